# frozen_string_literal: true

module Semel
  module Sidekiq
    # What a job class declared: the operation, and how a job's arguments make its key.
    class Declared
      # Whether it is one of Sidekiq's jobs that go over elements and can be interrupted between them.
      def self.iterable?(job_class)
        defined?(::Sidekiq::Job::Iterable) ? job_class.include?(::Sidekiq::Job::Iterable) : false
      end

      attr_reader :declaration

      def initialize(job_class, method, job_type, key:, payload:, scope:, dated:, once:, options:)
        @job_class = job_class
        @method = method
        @key = key
        @payload = payload
        @scope = scope
        @dated = dated
        @once = once
        @declaration = Guard::Declaration.new(job_type, **options)
      end

      # Runs one delivery of the job; +job+ is its message.
      def deliver(once, job, instance, &block)
        guard = @once || once
        guard.deliver(@declaration, call(guard, job["args"], Answers.message(job))) { |op| with(instance, op, &block) }
      end

      # Runs one element of an iterable job. One that is held, or that never succeeds, does not keep the others from
      # their turn.
      def deliver_element(once, job, instance, arguments, &block)
        guard = @once || once
        guard.deliver(@declaration, call(guard, arguments, Answers.message(job))) { |op| with(instance, op, &block) }
      rescue Held, Abandoned, PayloadMismatch, TooOld, KeyRefused => e
        raise if e.nested?

        guard.logger.error("#{job["class"]} #{job["jid"]}: an element is left out: #{e.message}")
      end

      private

      # The operation is the instance's as long as it runs.
      def with(instance, operation)
        before = instance.instance_variable_get(:@op)
        instance.op = operation
        result = yield
        _, not_storable = Guard::Results.encode(result)
        not_storable ? nil : result # what perform happens to return is no result that anybody asked for
      ensure
        instance.op = before
      end

      def call(guard, arguments, message)
        Guard::Call.new(
          key: pick(@key, arguments, "key"), payload: fields(arguments),
          scope: @scope.nil? ? guard.scope : scope(arguments), dated: @dated && pick(@dated, arguments, "date"),
          message: message, arguments: arguments
        )
      end

      def fields(arguments)
        return apply(@payload, arguments) if @payload.respond_to?(:call)

        Array(@payload).to_h { |name| [name_of(name), value(name, arguments, "payload")] }
      end

      def scope(arguments)
        found = @scope.respond_to?(:call) ? apply(@scope, arguments) : @scope
        return found.to_s unless found.nil? || found.is_a?(Float)

        raise KeyRefused.new("The scope of #{@declaration.job_type} is #{found.inspect}.",
                             remedy: "Give the tenant's name or number as text.")
      end

      def pick(source, arguments, what)
        return apply(source, arguments) if source.respond_to?(:call)
        return value(source, arguments, what) unless source.is_a?(Array)

        source.map { |name| value(name, arguments, what) }
      end

      # Calls it with as many of the arguments as it takes.
      def apply(callable, arguments)
        parameters = callable.is_a?(Method) || callable.is_a?(Proc) ? callable.parameters : callable.method(:call).parameters
        return callable.call(*arguments) if parameters.any? { |kind, _| kind == :rest }

        callable.call(*arguments.first(parameters.count { |kind, _| %i[req opt].include?(kind) }))
      end

      def value(name, arguments, what)
        place = name.is_a?(Integer) ? name : names.index(name.to_s.delete_prefix("_"))
        raise no_parameter(name, what) if place.nil?
        return arguments[place] if place < arguments.length

        raise KeyRefused.new(
          "There is no argument #{name.inspect} for the #{what} of #{@declaration.job_type}.",
          remedy: "Its default cannot be seen from here: pass it, or make the #{what} with a lambda that has the default."
        )
      end

      def name_of(name)
        name.is_a?(Integer) ? names.fetch(name) : name.to_s.delete_prefix("_")
      end

      # The parameters of perform (or each_iteration) as the class itself wrote it, less the mark of those that it does
      # not use.
      def names
        @names ||= begin
          found = @job_class.instance_method(@method)
          found = found.super_method while [Job::Guarded, Job::GuardedEach].include?(found.owner)
          found.parameters.filter_map do |kind, name|
            name.to_s.delete_prefix("_") if %i[req opt].include?(kind)
          end.freeze
        end
      end

      def no_parameter(name, what)
        ConfigurationError.new(
          "#{@job_class} names #{name.inspect} in its #{what}, which is no parameter of #{@method}.",
          remedy: "There are: #{names.join(", ")}."
        )
      end
    end
  end
end
