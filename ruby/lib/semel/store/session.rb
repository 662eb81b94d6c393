# frozen_string_literal: true

module Semel
  module Store
    # A driver's connection, seen through what the guard's operations need. Errors come out as semel's where they have one. It
    # never commits what the caller began: a transaction within one is a savepoint.
    class Session
      BEGIN_TEXT = {
        "postgresql" => "BEGIN ISOLATION LEVEL READ COMMITTED",
        "mysql" => "START TRANSACTION",
        "sqlite" => "BEGIN IMMEDIATE"
      }.freeze

      attr_reader :connection, :statements
      # Called with +:before+ or +:after+ and a statement's name: tests end processes there.
      attr_accessor :watch
      # Held while a statement runs: of a library whose connection several threads may use.
      attr_writer :lock

      # +own+: a connection of the guard's, on which nobody else begins anything.
      def initialize(connection, statements, own: false)
        @connection = connection
        @statements = statements
        @own = own
        @inside = false
        @wraps = false
        @lock = nil
      end

      def dialect
        statements.dialect
      end

      # Runs one of the guard's statements; its rows as arrays. A write that gives no rows answers one for each row it
      # changed.
      def ask(name, parameters = {}, literals = {})
        return transaction { ask(name, parameters, literals) } if @wraps && !transaction_open?

        watch&.call(:before, name)
        text = statements[name, literals]
        rows = locked { run(text.text, text.order.map { |each| [each, parameters.fetch(each.to_sym)] }) }
        watch&.call(:after, name)
        rows
      end

      # One statement as it is, without parameters.
      def run_text(text)
        locked { run(text, []) }
      end

      # A transaction of its own, or a savepoint inside the one that is open.
      def transaction
        nested = transaction_open?
        begun = done = false
        run_text(nested ? "SAVEPOINT semel" : BEGIN_TEXT.fetch(dialect))
        begun = @inside = true
        result = yield
        run_text(nested ? "RELEASE SAVEPOINT semel" : "COMMIT")
        done = true
        result
      ensure
        undo(nested) if begun && !done
        @inside = nested
      end

      def transaction_open?
        @own ? @inside : open_there?
      end

      # For a new connection of the guard's: refuses a server that takes no writes.
      def prepare(settings)
        settings.each { |text| run_text(text) }
        row = ask("read_only").first
        if [nil, true, "t", 1, "1"].include?(row[0])
          raise UnsafeClaim.new("The guard's connection leads to a server that takes no writes, such as a read replica.",
                                holds: "Nothing was claimed.", remedy: "Give the guard the primary server.")
        end
        @wraps = !row[1].nil? && !row[1].start_with?("read ")
        self
      rescue StandardError
        close
        raise
      end

      private

      def locked(&block)
        @lock.nil? ? block.call : @lock.synchronize(&block)
      end

      # What is undone is gone anyway where the connection or the transaction is.
      def undo(nested)
        (nested ? ["ROLLBACK TO SAVEPOINT semel", "RELEASE SAVEPOINT semel"] : ["ROLLBACK"]).each { |text| run_text(text) }
      rescue StandardError
        nil
      end

      # Databases without a kind of their own for truth have 1 and 0.
      def encode(value)
        case value
        when true then 1
        when false then 0
        else value
        end
      end
    end

    # Over pg.
    class PgSession < Session
      def clean?
        connection.transaction_status == PG::PQTRANS_IDLE
      rescue PG::Error
        false
      end

      # An idle connection that can be read has been ended, or is not as it was left.
      def alive?
        connection.status == PG::CONNECTION_OK && IO.select([connection.socket_io], nil, nil, 0).nil?
      rescue PG::Error, IOError, SystemCallError
        false
      end

      def close
        connection.finish unless connection.finished?
      end

      private

      def open_there?
        connection.transaction_status != PG::PQTRANS_IDLE
      end

      def run(text, named)
        values = named.map { |_, value| encode(value) }
        result = connection.exec_params(text, values, 0, PG::TypeMapAllStrings.new)
        result.type_map = PG::TypeMapAllStrings.new
        result.values
      rescue PG::Error => e
        raise Faults.postgresql(e, e.result&.error_field(PG::PG_DIAG_SQLSTATE), lost: lost?(e))
      ensure
        result&.clear
      end

      def encode(value)
        case value
        when true then "t"
        when false then "f"
        else value&.to_s
        end
      end

      def lost?(error)
        error.is_a?(PG::ConnectionBad) || error.is_a?(PG::UnableToSend) || connection.finished? ||
          connection.status != PG::CONNECTION_OK
      end
    end

    # Over mysql2, for MariaDB and MySQL. Every write of the guard raises the revision, so that CLIENT.FOUND_ROWS, which
    # counts rows that were only found, makes no difference.
    class Mysql2Session < Session
      OPTIONS = { as: :array, symbolize_keys: false, cast: true, cast_booleans: false, stream: false, cache_rows: true,
                  database_timezone: :utc, application_timezone: :utc }.freeze
      NO_SUCH_SAVEPOINT = 1305
      SERVER_GONE = 2006

      def clean?
        !@inside && !connection.closed?
      end

      def alive?
        !connection.closed? && connection.ping
      rescue Mysql2::Error
        false
      end

      def close
        connection.close
      end

      private

      # The driver does not show the server's flag: a savepoint stays only where a transaction is, or where autocommit is off.
      def open_there?
        run_text("SAVEPOINT semel_probe")
        run_text("RELEASE SAVEPOINT semel_probe")
        true
      rescue Mysql2::Error => e
        raise unless e.error_number == NO_SUCH_SAVEPOINT

        false
      end

      def run(text, named)
        return answered(connection.query(text, **OPTIONS), connection) if named.empty?

        statement = connection.prepare(text)
        answered(statement.execute(*named.map { |_, value| encode(value) }, **OPTIONS), statement)
      rescue Mysql2::Error => e
        raise Faults.mysql(e, connection.closed? ? SERVER_GONE : e.error_number.to_i)
      ensure
        close_statement(statement)
      end

      def answered(result, source)
        result.nil? ? Array.new([source.affected_rows, 0].max) { [1] } : result.to_a
      end

      def close_statement(statement)
        statement&.close
      rescue Mysql2::Error
        nil
      end
    end

    # Over sqlite3.
    class SqliteSession < Session
      CODES = { "SQLite3::BusyException" => 5, "SQLite3::LockedException" => 6, "SQLite3::ReadOnlyException" => 8,
                "SQLite3::CantOpenException" => 14, "SQLite3::SQLException" => 1 }.freeze

      def clean?
        !connection.closed? && !connection.transaction_active?
      end

      def alive?
        !connection.closed?
      end

      def close
        connection.close unless connection.closed?
      end

      private

      def open_there?
        connection.transaction_active?
      end

      def run(text, named)
        statement = connection.prepare(text)
        named.each { |name, value| statement.bind_param(name, encode(value)) }
        rows = []
        while (row = statement.step)
          rows << row.to_a
        end
        rows
      rescue SQLite3::Exception => e
        code = e.code || CODES.fetch(e.class.name, 0)
        raise Faults.sqlite(e, code, has_tables: -> { tables? })
      ensure
        statement.close if statement && !statement.closed?
      end

      def tables?
        !connection.get_first_value("SELECT 1 FROM sqlite_master WHERE name = 'semel_operations'").nil?
      rescue SQLite3::Exception
        true
      end
    end
  end
end
