# frozen_string_literal: true

module Semel
  module Store
    # The databases' errors in semel's words, told apart by SQLSTATE or number, never by their text.
    module Faults
      BUSY = %w[55P03 55000 57014].freeze # lock_timeout, a DETACH under way, statement_timeout or a cancel
      RETRY = %w[40001 40P01].freeze
      SCHEMA = %w[42P01 3F000 42703 42883].freeze
      ENDED = %w[57P01 57P02 57P03 57P05 25P04 53300 53400 08000 08001 08003 08004 08006 08P01].freeze
      READ_ONLY = %w[25006].freeze

      MYSQL_BUSY = [1205, 3572].freeze # lock wait time-out; NOWAIT
      MYSQL_GONE = [1213, 1020].freeze # deadlock; changed since the snapshot
      MYSQL_SCHEMA = [1146, 1054].freeze
      MYSQL_READ_ONLY = [1290, 1792, 1836].freeze
      MYSQL_ENDED = [1040, 1042, 1053, 1077, 1079, 1129, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1927, 4031].freeze
      MYSQL_CLIENT = (2000...2100)

      SQLITE_ERROR = 1
      SQLITE_BUSY = [5, 6].freeze # and locked
      SQLITE_READ_ONLY = 8
      SQLITE_CANNOT_OPEN = 14
      SQLITE_BUSY_SNAPSHOT = 517

      module_function

      # The error to raise for a driver's error: one of semel's where there is one, else the driver's own.
      def postgresql(error, sqlstate, lost:)
        case sqlstate
        when *BUSY then busy(error)
        when *RETRY then retry_transaction(error, "Nothing of it is stored.")
        when *SCHEMA then mismatch(error, "Run: semel migrate")
        when *READ_ONLY then read_only(error)
        else lost || ENDED.include?(sqlstate) ? ended(error) : error
        end
      end

      def mysql(error, number)
        case number
        when *MYSQL_BUSY then busy(error)
        when *MYSQL_GONE
          retry_transaction(error, "The transaction is gone: nothing of it is stored, the caller's own rows included.")
        when *MYSQL_SCHEMA then mismatch(error, "Run: semel migration rails --only guard --dialect mysql")
        when *MYSQL_READ_ONLY then read_only(error)
        when *MYSQL_ENDED, MYSQL_CLIENT then ended(error)
        else error
        end
      end

      def sqlite(error, code, has_tables:)
        if code == SQLITE_BUSY_SNAPSHOT
          return retry_transaction(error,
                                   "The transaction is still open, but can write no more.")
        end

        case code & 0xFF
        when *SQLITE_BUSY then busy(error)
        when SQLITE_READ_ONLY then read_only(error)
        when SQLITE_CANNOT_OPEN then ended(error)
        when SQLITE_ERROR
          has_tables.call ? error : mismatch(error, "Run: semel migration rails --only guard --dialect sqlite")
        else error
        end
      end

      # The database ended the caller's whole transaction, with all that it had written; a savepoint does not help.
      def transaction_gone(why)
        RetryTransaction.new(
          "The database ended this transaction: #{why}.",
          holds: "The transaction is gone: nothing of it is stored, the caller's own rows included.",
          remedy: "Run the whole transaction again."
        )
      end

      def busy(error)
        LockBusy.new("Others hold a lock that this needs: #{summary(error)}.", remedy: "Try again later.")
      end

      def retry_transaction(error, holds)
        RetryTransaction.new(
          "The database ended this transaction: #{summary(error)}.",
          holds: holds,
          remedy: "Run the whole transaction again."
        )
      end

      def mismatch(error, remedy)
        SchemaMismatch.new(
          "semel's tables are not there, or not as this version needs them: #{summary(error)}.",
          holds: "Nothing was stored.", remedy: remedy
        )
      end

      def ended(error)
        DatabaseUnreachable.new(
          "The connection to the database ended, or could not be made: #{summary(error)}.",
          holds: "What was not committed is gone; a commit that was under way may have happened.",
          remedy: "Check that the server runs and takes connections."
        )
      end

      def read_only(error)
        UnsafeClaim.new(
          "The database takes no writes here: #{summary(error)}.",
          holds: "Nothing was stored.",
          remedy: "Give the guard the primary server, or a file that it may write to."
        )
      end

      def summary(error)
        error.message.strip.lines.first.to_s.strip.then { |line| line.empty? ? error.class.name : line }
      end
    end
  end
end
