# frozen_string_literal: true

module Semel
  module Guard
    # What happens to one delivery: begin, perhaps look, act, and end.
    #
    # Exceptions that other threads raise in this one (a shutdown, a time-out) reach the caller's code and nothing else:
    # what the guard writes is finished first, and what they mean is written before they go on.
    class Delivery
      TRIES = 10

      def initialize(declaration, call, requests, place:, beat:, logger:, beyond: false)
        @declaration = declaration
        @call = call
        @requests = requests
        @place = place
        @beat = beat
        @logger = logger
        @beyond = beyond
        @answers = Answers.new(logger)
        @ending = Ending.new(declaration, place, @answers, logger)
      end

      # One delivery of an outside effect. Answers the block's result, or a Repeat; raises the other answers.
      def run(&block)
        @place.refuse_open_transaction(@declaration.job_type)
        @ending.masked do
          request = current { |older| @place.ask { |session| Store::Begin.read(session, older) } }
          begun = begin_with_care(request)
          begun = look(request, begun) if begun.reply == :look
          next @answers.tell(request, begun) unless begun.reply == :act

          act(Operation.new(@declaration, request, begun, @ending), &block)
        end
      end

      # One delivery of a Row, in the caller's transaction or a new one. An answer is raised once the transaction is over, so
      # that what was written about it stays.
      def run_row(on, &block)
        unacted = result = nil
        ended = false
        @ending.masked do
          @place.transaction(@declaration.job_type, on) do |session, connection|
            @ending.session = session
            request = current { |older| Store::Begin.read(session, older) }
            begun = begin_row(session, request)
            if begun.reply == :act
              result = act_in_row(Operation.new(@declaration, request, begun, @ending, connection), &block)
            else
              unacted = [request, begun]
            end
            ended = true
          end
          raise rolled_back unless ended

          unacted ? @answers.tell(*unacted) : result
        end
      rescue LockBusy
        raise @answers.busy(@requests.first)
      rescue RetryTransaction => e
        @answers.log(:warn, @requests.first, "retry_transaction", e.happened)
        raise
      end

      private

      # The request whose key has a record: with a rotated secret the older key may be the one that counts. An operation whose
      # record may have been deleted by now must have one: without it, nobody knows whether it was done.
      def current(&block)
        found = @requests.drop(1).find(&block)
        return found if found

        request = @requests.first
        raise @answers.too_old(request) if @beyond && yield(request).nil?

        request
      end

      # An interrupt of the whole process can come while the claim is made: it is given back all the same.
      def begin_with_care(request)
        begin_outside(request)
      rescue StandardError
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException
        @ending.give_back(request, e)
        raise
      end

      def begin_outside(request)
        TRIES.times do
          begun = @place.ask { |session| Store::Begin.first(session, request) || Store::Begin.known(session, request) }
          return begun unless begun == :again
        rescue LockBusy
          break
        rescue RetryTransaction
          next
        end
        raise @answers.busy(request)
      end

      def begin_row(session, request)
        in_savepoint = false
        TRIES.times do
          begun = Store::Begin.row(session, request, in_savepoint: in_savepoint)
          break if begun.nil?
          return begun.unwritten ? hold_apart(request, begun) : begun unless begun == :again

          in_savepoint = true
        end
        raise @answers.busy(request)
      end

      # A move to held is written apart: in the caller's transaction it would be rolled back with the caller's refusal.
      def hold_apart(request, begun)
        told = @place.ask { |session| Store::Begin.known(session, request) }
        told == :again ? begun : told
      end

      def look(request, begun)
        finding, error = find(begun.reference)
        result, = Results.encode(finding.result) if finding.is_a?(Found)
        finding = DONE if finding.is_a?(Found)
        unless [DONE, NOT_DONE, UNKNOWN].include?(finding)
          error = "the look-up answered #{finding.inspect}, which is not DONE, NOT_DONE or UNKNOWN"
          @logger.error("#{@declaration.job_type}: #{error}")
          finding = UNKNOWN
        end
        told = @ending.patiently { |session| Store::Begin.looked(session, request, finding, result: result, error: error) }
        return told unless told == :again

        raise @answers.claim_lost(request, "the look-up outlived its lease")
      end

      def find(reference)
        [unmasked { @declaration.effect.lookup.find.call(reference, *@call.arguments) }, nil]
      rescue StandardError => e
        error = Guard.shown(e)
        @logger.warn("#{@declaration.job_type}: its look-up failed: #{error}")
        [UNKNOWN, error]
      end

      def act(operation, &block)
        returned = raised = false
        result = @beat.keep(operation) { unmasked { block.call(operation) } }
        require_acting(operation)
        returned = true
        operation.completed? ? operation.result : @ending.finish(operation, result)
      rescue Exception => e # rubocop:disable Lint/RescueException
        raised = true
        @ending.tell_whose(e)
        @ending.failed(operation, e) unless returned
        raise
      ensure
        left_early(operation) unless returned || raised
      end

      def act_in_row(operation, &block)
        returned = raised = false
        result = unmasked { block.call(operation) }
        returned = true
        operation.completed? ? operation.result : @ending.finish(operation, result)
      rescue Exception => e # rubocop:disable Lint/RescueException
        raised = true
        @ending.tell_whose(e)
        raise
      ensure
        raise left if !returned && !raised && !ending_thread?
      end

      def require_acting(operation)
        return if !@declaration.explicit? || operation.completed? || operation.acted?

        raise ConfigurationError.new("#{@declaration.job_type} returned without op.acting or op.done.",
                                     remedy: 'Call the outside system inside "op.acting { … }", or declare acting: :from_start.')
      end

      # Left by return, break, throw or the thread's end: nobody said how it ended.
      def left_early(operation)
        return if operation.completed?

        @ending.failed(operation, left)
        raise left unless ending_thread?
      end

      def left
        ConfigurationError.new("#{@declaration.job_type} left its block by return, break or throw.",
                               remedy: "Leave it by next; for an outside effect also after op.done.")
      end

      # ActiveRecord ends its transaction block silently where the caller's code raises this.
      def rolled_back
        ConfigurationError.new("#{@declaration.job_type} was rolled back by ActiveRecord::Rollback.",
                               holds: "Nothing of it is stored, and it counts as not done.",
                               remedy: "Raise another exception; or give on: a connection in your own transaction.")
      end

      def ending_thread?
        Thread.current.status == "aborting"
      end

      def unmasked(&block)
        Thread.handle_interrupt(Object => :immediate, &block)
      end
    end
  end
end
