# frozen_string_literal: true

module Semel
  module Guard
    # Keeps the leases of operations that were declared with +extend: true+, from a thread beside the jobs. One thread for all
    # operations of a Once; it ends when nothing is kept. Each is kept for its longest run at most.
    class Beat
      Kept = Struct.new(:operation, :due, :ends)

      def initialize(place, logger)
        @place = place
        @logger = logger
        start
      end

      # Extends the operation's lease at each third of it, while the block runs.
      def keep(operation)
        return yield if !operation.declaration.extend_lease || operation.declaration.row? || @place.inside

        begin
          add(operation)
          yield
        ensure
          @lock.synchronize do
            @kept.delete(operation)
            @changed.signal
          end
        end
      end

      private

      def start
        @process = Process.pid
        @lock = Mutex.new
        @changed = ConditionVariable.new
        @kept = {}.compare_by_identity
        @thread = nil
      end

      def add(operation)
        start if @process != Process.pid # a fork inherits neither the thread nor what it kept
        now = clock
        @lock.synchronize do
          @kept[operation] = Kept.new(operation, now + period(operation), now + operation.declaration.longest_run)
          @thread = start_thread unless @thread&.alive?
          @changed.signal
        end
      end

      def run
        while (due = wait_for_due)
          due.each { |kept| extend_lease(kept) }
        end
      end

      # It inherits what the delivery masks, and must end with the process all the same.
      def start_thread
        Thread.new do
          Thread.current.name = "semel-beat"
          Thread.handle_interrupt(Object => :immediate) { run }
        end
      end

      # Those whose lease is to be extended now; nil when nothing is kept any more, which ends the thread.
      def wait_for_due
        @lock.synchronize do
          next @thread = nil if @kept.empty?

          wait = @kept.each_value.map(&:due).min - clock
          @changed.wait(@lock, wait) if wait.positive?
          @kept.values.select { |kept| kept.due <= clock }
        end
      end

      def extend_lease(kept)
        operation = kept.operation
        asked = clock
        held = @place.ask_beat { |session| Store::Finish.extend_lease(session, operation.request) }
        operation.renewed(asked) if held
        settle(kept, held, asked)
      rescue StandardError => e # whatever it is, the other operations are still to be kept
        @logger.warn("#{operation.declaration.job_type}: its lease could not be extended: #{Guard.shown(e)}")
        settle(kept, true, asked)
      end

      def settle(kept, held, asked)
        operation = kept.operation
        @lock.synchronize do
          return unless @kept[operation].equal?(kept)

          if held && asked <= kept.ends
            kept.due = asked + period(operation)
            return
          end
          @kept.delete(operation)
        end
        operation.lose unless held
        reason = held ? "it runs longer than longest_run" : "the claim is lost"
        @logger.error("#{operation.declaration.job_type}: its lease is extended no more: #{reason}")
      end

      def period(operation)
        operation.request.lease / 3
      end

      def clock
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
