# frozen_string_literal: true

module Semel
  module Guard
    # Where the guard keeps its records: its own connections for outside effects, the caller's transaction for a Row.
    class Place
      MOST_ROWS = 8
      # Before a connection is tried again.
      PAUSES = [0.05, 0.1].freeze
      # So many in a row are tried again: MySQL's inserts lock their neighbours' keys, and one of two is ended at once.
      DEADLOCKS = 15
      THREE_COMMITS = "A Row was called on a connection without an open transaction: claim, effect and completion would be " \
                      "three commits."

      # A test's connection that everything runs on, as savepoints; see Semel::Testing.
      attr_accessor :inside

      def initialize(target, schema, watch: nil)
        @source = Store::Sources.find(target)
        @schema = schema
        @watch = watch
        @own = Store::OwnConnections.new { open }
        @rows = Store::OwnConnections.new(most: MOST_ROWS, used_for: "Row operations") { open }
        @same_database = SameDatabase.new { |&asked| ask(&asked) }
        @beats = Store::OwnConnections.new(most: 1, used_for: "keeping leases") { open }
      end

      def dialect
        @source.dialect
      end

      # Yields a session of the guard's own, and repeats the block where the connection ended or a deadlock came: each of the
      # guard's writes is fenced by its token, and so safe to repeat.
      def ask(&block)
        return block.call(session_on(inside)) if inside

        again { @own.session(&block) }
      end

      # +ask+, on the one connection that nobody else uses: a lease does not end because others are busy.
      def ask_beat(&block)
        again { @beats.session(&block) }
      end

      # An outside effect is refused where the caller's transaction is visibly open: it may roll back after the call.
      def refuse_open_transaction(job_type)
        open_now = inside ? nil : @source.open_transaction
        return if open_now.nil?

        raise UnsafeClaim.new(
          "#{job_type} has an effect outside the database, and #{open_now}.",
          holds: "Nothing was claimed and nothing done.",
          remedy: "Call it after your commit; or give Semel.once a URL, if what is open has nothing to do with it."
        )
      end

      # Yields a session and a connection in the caller's transaction (+on+), or in a new one that is committed at the end.
      def transaction(job_type, on, &block)
        if on
          require_transaction(on)
          caller_session = session_on(on)
          @same_database.require(job_type, caller_session) unless inside
          block.call(caller_session, on)
        elsif inside
          session = session_on(inside)
          session.transaction { block.call(session, inside) }
        elsif @source.respond_to?(:within_transaction)
          @source.within_transaction { |connection| block.call(session_on(connection), connection) }
        else
          @rows.session { |session| session.transaction { block.call(session, session.connection) } }
        end
      end

      def close
        [@own, @rows, @beats].each(&:close)
      end

      private

      def open
        @source.open(statements).tap { |session| session.watch = @watch }
      end

      def statements
        @statements ||= Store::Statements.new(dialect, schema: @schema)
      end

      def session_on(connection)
        by_records = Store::ActiveRecordSource.connection?(connection)
        driver = by_records ? Store::ActiveRecordSource.driver_of(connection) : connection
        found = Store::Sources.session_class(driver).new(driver, statements)
        found.watch = @watch
        return found unless by_records

        found.lock = connection.lock
        connection.clear_query_cache # what a Row reads is what there is once it has its claim
        found
      end

      def require_transaction(connection)
        open_now = if Store::ActiveRecordSource.connection?(connection)
                     connection.transaction_open?
                   else
                     session_on(connection).transaction_open?
                   end
        return if open_now

        raise UnsafeClaim.new(
          THREE_COMMITS,
          holds: "Nothing was claimed and nothing done.",
          remedy: 'Open one: "ActiveRecord::Base.transaction do", "connection.transaction do", or BEGIN.'
        )
      end

      def again
        pauses = PAUSES.dup
        deadlocks = 0
        begin
          yield
        rescue DatabaseUnreachable
          raise if pauses.empty?

          sleep(pauses.shift)
          retry
        rescue RetryTransaction
          deadlocks += 1
          raise if deadlocks >= DEADLOCKS

          sleep(rand(0.002..0.02) * deadlocks)
          retry
        end
      end
    end
  end
end
