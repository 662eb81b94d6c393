# frozen_string_literal: true

module Semel
  module Store
    # The guard's own connections to where its records are: few, opened when first used, never the caller's. A claim on the
    # caller's connection would be gone with the caller's rollback; one from the caller's pool would wait for ever where that
    # pool has one connection. Safe to share between threads and forked processes.
    class OwnConnections
      MOST = 4
      WAIT = 10.0
      # Seconds that an idle connection is taken to be alive without a look.
      TRUSTED_FOR = 1.0

      def initialize(most: MOST, used_for: "single statements", wait: WAIT, &open)
        @open = open
        @most = most
        @used_for = used_for
        @wait = wait
        @inherited = []
        @pool = Pool.new(most)
      end

      # Yields a connection of the guard's. Raises DatabaseUnreachable where none comes free.
      def session
        pool = own_pool
        raise exhausted unless pool.permit(@wait)

        begin
          session = pool.idle_one || @open.call
          went_well = broken = false
          result = yield session
          went_well = true
          result
        rescue Exception => e # rubocop:disable Lint/RescueException -- a statement that was interrupted leaves its answer behind
          broken = !e.is_a?(StandardError) || e.is_a?(DatabaseUnreachable)
          raise
        ensure
          put_back(pool, session, went_well, broken) if session
          pool.release
        end
      end

      # Closes the connections; one in use is closed when it comes free. A later use opens anew.
      def close
        ended = own_pool
        @pool = Pool.new(@most)
        while (session = ended.pop)
          session.first.close
        end
      end

      # Permits and idle connections of one process; the connection used last is taken first.
      class Pool
        attr_reader :process

        def initialize(most)
          @process = Process.pid
          @lock = Mutex.new
          @free = ConditionVariable.new
          @idle = []
          @left = most
        end

        # Whether one came free in time.
        def permit(seconds)
          ends = now + seconds
          @lock.synchronize do
            while @left.zero?
              rest = ends - now
              return false if rest <= 0

              @free.wait(@lock, rest)
            end
            @left -= 1
          end
          true
        end

        def release
          @lock.synchronize do
            @left += 1
            @free.signal
          end
        end

        def idle_one
          while (found = pop)
            session, trusted_from = found
            return session if now - trusted_from < TRUSTED_FOR || session.alive?

            session.close
          end
        end

        def pop
          @lock.synchronize { @idle.pop }
        end

        def push(session, trusted)
          @lock.synchronize { @idle.push([session, trusted ? now : -Float::INFINITY]) }
        end

        private

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end

      private

      # A fork inherits no connections: what its parent had is kept, since letting go of it would end it there.
      def own_pool
        return @pool if @pool.process == Process.pid

        @inherited << @pool
        @pool = Pool.new(@most)
      end

      def put_back(pool, session, went_well, broken)
        if !broken && pool.equal?(@pool) && session.clean?
          pool.push(session, went_well)
        else
          session.close
        end
      end

      def exhausted
        DatabaseUnreachable.new(
          "All #{@most} connections of the guard for #{@used_for} stayed in use for #{@wait.round} s.",
          holds: "Nothing was claimed.",
          remedy: "Is the database slow? A Row called without on: holds one for as long as its block runs."
        )
      end
    end
  end
end
