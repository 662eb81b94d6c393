# frozen_string_literal: true

module Semel
  module Sidekiq
    # For job classes: +semel_once+ says which operation a job is. The middleware guards it; inside +perform+, +op+ is the
    # operation.
    #
    #   class ChargeJob
    #     include Sidekiq::Job
    #     include Semel::Sidekiq::Job
    #     semel_once "charge-order", key: :order_id, payload: [:amount], acting: :explicit
    module Job
      # In front of perform: a guarded job does not run where the middleware is missing.
      module Guarded
        def perform(*arguments)
          op
          super
        end
      end

      # In front of each_iteration: an element is an operation.
      module GuardedEach
        def each_iteration(*arguments)
          once, job = semel_delivery
          self.class.semel_declared.deliver_element(once, job, self, arguments) { super(*arguments) }
        end
      end

      # What a job class says.
      module ClassMethods
        # This class' declaration, or the one it inherits; nil where there is none.
        def semel_declared
          return @semel_declared if defined?(@semel_declared)

          superclass.respond_to?(:semel_declared) ? superclass.semel_declared : nil
        end

        # One business operation per +key+: names of perform's parameters, their positions, or something to call with
        # its arguments. +payload+: those that must not differ under one key, or something that makes a hash of named
        # fields; [] for none. +scope+ and +dated+ likewise. +once+: the guard, where it is not the middleware's. The
        # rest is what Semel::Guard::Declaration takes.
        def semel_once(job_type, key:, payload:, scope: nil, dated: nil, once: nil, **options)
          if Declared.iterable?(self)
            raise ConfigurationError.new("#{self} is an iterable job: it is many operations.",
                                         remedy: "Guard its elements: semel_each #{job_type.inspect}, key: …")
          end
          @semel_declared = Declared.new(self, :perform, job_type, key: key, payload: payload, scope: scope, dated: dated,
                                                                   once: once, options: options)
          prepend Guarded
        end

        # For an iterable job: each element is an operation. Names and positions are those of each_iteration's parameters.
        def semel_each(job_type, key:, payload:, scope: nil, dated: nil, once: nil, **options)
          unless Declared.iterable?(self)
            raise ConfigurationError.new("#{self} is no iterable job.",
                                         remedy: "Use semel_once; or include Sidekiq::IterableJob first.")
          end

          @semel_declared = Declared.new(self, :each_iteration, job_type, key: key, payload: payload, scope: scope, dated: dated,
                                                                          once: once, options: options)
          prepend GuardedEach
        end
      end

      def self.included(base)
        base.extend(ClassMethods)
      end

      # Which guard and which message this delivery has; the middleware's to set.
      attr_accessor :semel_delivery
      attr_writer :op

      # The operation that this delivery acts on.
      def op
        @op || raise(
          ConfigurationError.new(
            "#{self.class} was performed without the guard.",
            holds: "Nothing was claimed and nothing done.",
            remedy: "Add Semel::Sidekiq::Middleware to the server middleware; in tests, to Sidekiq::Testing.server_middleware."
          )
        )
      end
    end
  end
end
