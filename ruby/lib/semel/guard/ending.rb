# frozen_string_literal: true

module Semel
  module Guard
    # What an attempt that holds a claim writes: its steps, and how it ended. Each write is fenced by the attempt's token.
    class Ending
      # Tries for a lock that others hold, each of half a second or a second in the database.
      PATIENCE = 20

      # The session of a Row's transaction, which its completion has to be in.
      attr_writer :session

      def initialize(declaration, place, answers, logger)
        @declaration = declaration
        @place = place
        @answers = answers
        @logger = logger
      end

      # Runs the guard's own part, which no exception that another thread raises in this one interrupts.
      def masked(&block)
        Thread.handle_interrupt(Object => :never, &block)
      end

      # Asks what a claim's holder must be able to write, though others hold its row (SQLite: its file) for some seconds.
      def patiently(&block)
        tries = 0
        begin
          @place.ask(&block)
        rescue LockBusy
          tries += 1
          raise if tries >= PATIENCE

          retry
        end
      end

      # The fenced step before the outside call.
      def act(operation)
        resend_in_time(operation)
        held = !operation.lost? && patiently { |session| Store::Finish.act(session, operation.request) }
        lose(operation, "acting") unless held
      end

      def extend_lease(operation, tried)
        lose(operation, tried) unless patiently { |session| Store::Finish.extend_lease(session, operation.request) }
      end

      # Completes with a result.
      def finish(operation, result)
        stored, dropped = @declaration.store_result ? Results.encode(result) : nil
        @logger.warn("#{@declaration.job_type}: its result is not stored: #{dropped}") if dropped
        ending = { result: stored, result_dropped: !dropped.nil? }
        @declaration.row? ? finish_row(operation.request, ending) : finish_outside(operation, ending)
        operation.complete(result)
        result
      end

      # Marks an answer that came out of the block: it is this operation's own, or that of another one inside it. The
      # outermost operation marks last. RetryTransaction is about a transaction, which both may be in.
      def tell_whose(error)
        error.nested = !error.equal?(@told) if error.is_a?(Error) && !error.is_a?(RetryTransaction)
      end

      # Writes what an exception means. Where that fails too the lease decides: it is never the error that is raised.
      def failed(operation, error)
        return if operation.completed? || operation.lost?

        certain = @declaration.not_done.any? { |kind| kind === error } # rubocop:disable Style/CaseEquality
        move = Operations.failed(acting: operation.passed?, not_done: certain, in_doubt: operation.in_doubt)
        give_up(operation.request, move, Guard.shown(error))
      rescue StandardError => e
        @logger.error("#{@declaration.job_type}: its end could not be stored, its lease decides: #{Guard.shown(e)}")
      end

      # Releases the attempt's own claim, if there is one, where it was interrupted while it began: it did nothing.
      # Where an attempt before it may have acted, nobody knows what that one did: then the claim is uncertain, and one
      # that was to look first is left to its lease.
      def give_back(request, error)
        record = patiently { |session| Store::Begin.read(session, request) }
        return if record.nil? || !record.mine || record.state != "claimed"

        if !record.acting || (record.takeovers.zero? && record.looks.zero?)
          give_up(request, :release, Guard.shown(error))
        elsif record.unsure_for.nil?
          give_up(request, :uncertain, Guard.shown(error))
        end
      rescue StandardError => e
        @logger.error("#{@declaration.job_type}: its claim could not be given back, its lease decides: #{Guard.shown(e)}")
      end

      private

      def claim_lost(request, reason)
        @told = @answers.claim_lost(request, reason)
      end

      def give_up(request, move, error)
        if move == :release
          patiently { |session| Store::Finish.release(session, request, error: error) }
          @answers.log(:info, request, "released", error)
        else
          patiently { |session| Store::Finish.uncertain(session, request, error: error) }
          @answers.log(:warn, request, "uncertain", error)
        end
      end

      # A paused attempt may come here when the provider has forgotten the reference that another one used.
      def resend_in_time(operation)
        return if !operation.in_doubt || operation.lost?

        record = patiently { |session| Store::Begin.read(session, operation.request) }
        may = record.nil? ||
              Operations.may_resend?(record, @declaration.effect, longest_run: @declaration.longest_run)
        raise claim_lost(operation.request, "by now the provider may have forgotten its reference") unless may
      end

      def finish_row(request, ending)
        return if Store::Finish.complete_row(@session, request, **ending)

        reason = "its completion is not in the transaction that claimed it: was there a commit midway?"
        raise claim_lost(request, reason)
      end

      def finish_outside(operation, ending)
        request = operation.request
        return if patiently { |session| Store::Finish.complete(session, request, **ending) }
        return if patiently { |session| Store::Finish.complete_late(session, request, **ending) } == :written

        operation.lose
        raise claim_lost(request, "another attempt has taken it over; what this one did is kept as evidence")
      end

      def lose(operation, tried)
        operation.lose
        patiently { |session| Store::Finish.lost(session, operation.request, tried: tried) }
        raise claim_lost(operation.request, "another attempt has taken it over, or a person decided")
      end
    end
  end
end
