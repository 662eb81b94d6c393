# frozen_string_literal: true

module Semel
  module Sidekiq
    # Server middleware: add it last, so that it is the innermost.
    #
    #   Sidekiq.configure_server do |config|
    #     config.server_middleware { |chain| chain.add Semel::Sidekiq::Middleware, ONCE }
    #   end
    #
    # It guards the classes that say +semel_once+ or +semel_each+. It translates the guard's answers for every job, so that
    # one that calls +once.operation+ by itself comes again where that is in progress.
    class Middleware
      def initialize(once)
        unless once.is_a?(Once)
          raise ConfigurationError.new("The middleware got #{once.inspect}.",
                                       remedy: "chain.add Semel::Sidekiq::Middleware, Semel.once(…)")
        end

        @once = once
        @answers = Answers.new(once.logger)
      end

      def call(instance, job, _queue, &block)
        declared = instance.class.respond_to?(:semel_declared) ? instance.class.semel_declared : nil
        iterable = Declared.iterable?(instance.class)
        @answers.translate(job, asked: !declared.nil? && !iterable) do
          if declared.nil? then yield
          elsif iterable
            instance.semel_delivery = [@once, job] # each element is guarded by itself
            yield
          else
            declared.deliver(@once, job, instance, &block)
          end
        end
      end
    end
  end
end
