# frozen_string_literal: true

require "uri"

module Semel
  module Store
    # How the guard opens a connection of its own, from what people give it. +dialect+ and +open+ may ask the target, so
    # they are called as late as the first delivery.
    class Source
      SETTINGS = {
        "postgresql" => [].freeze, # its statements set their own lock_timeout: a setting of the session leaks through a pooler
        "mysql" => ["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                    "SET SESSION innodb_lock_wait_timeout = 1"].freeze,
        "sqlite" => [].freeze
      }.freeze
      SESSIONS = { "postgresql" => PgSession, "mysql" => Mysql2Session, "sqlite" => SqliteSession }.freeze

      # A new connection of the guard's, set up.
      def open(statements)
        SESSIONS.fetch(dialect).new(connect, statements, own: true).prepare(SETTINGS.fetch(dialect))
      end
    end

    # Where +target+ leads.
    module Sources
      TAKEN = "Give a URL (postgresql://, mysql2://, sqlite3:///path), ActiveRecord::Base or another connection class of " \
              "ActiveRecord, or a connection of pg, mysql2 or sqlite3."
      DRIVERS = { "PG::Connection" => PgSession, "Mysql2::Client" => Mysql2Session,
                  "SQLite3::Database" => SqliteSession }.freeze

      module_function

      def find(target)
        return UrlSource.new(target) if target.is_a?(String)
        return ActiveRecordSource.new(target) if active_record?(target)

        case session_class(target, nil)&.name
        when "Semel::Store::PgSession" then PgSource.new(target)
        when "Semel::Store::Mysql2Session" then Mysql2Source.new(target)
        when "Semel::Store::SqliteSession" then SqliteSource.new(target)
        else raise ConfigurationError.new("The guard got a #{target.class}, which leads to no database.", remedy: TAKEN)
        end
      end

      def active_record?(target)
        target.is_a?(Class) && target.respond_to?(:connection_db_config)
      end

      # Which session speaks over a driver's connection.
      def session_class(connection, missing = true)
        found = connection.class.ancestors.map(&:name).find { |name| DRIVERS.key?(name) }
        if !found && missing
          raise ConfigurationError.new("#{connection.class} is no connection that the guard knows.",
                                       remedy: TAKEN)
        end

        DRIVERS[found]
      end
    end

    # Drivers are loaded when a connection is made.
    module Drivers
      module_function

      # +settings+ are libpq's by name, or a URL.
      def postgresql(settings)
        require "pg"
        if settings.is_a?(String)
          settings = PG::Connection.conninfo_parse(settings).to_h do |each|
            [each[:keyword].to_sym, each[:val]]
          end
        end
        PG.connect(**{ connect_timeout: 10, fallback_application_name: "semel guard" }, **settings.compact)
      rescue PG::Error => e
        raise Faults.ended(e)
      end

      def mysql(**options)
        require "mysql2"
        client = Mysql2::Client.new(connect_timeout: 10, **options, encoding: "utf8mb4", reconnect: false)
        client.automatic_close = false # a forked process does not end its parent's connection
        client
      rescue Mysql2::Error => e
        raise Faults.ended(e)
      end

      # Waits for another writer half a second, without keeping this process's other threads from running.
      def sqlite(path)
        if ["", ":memory:"].include?(path)
          raise ConfigurationError, "The guard cannot share a SQLite database in memory: give it a file."
        end

        require "sqlite3"
        database = SQLite3::Database.new(path)
        database.extended_result_codes = true
        began = nil
        database.busy_handler do |tries|
          began = Process.clock_gettime(Process::CLOCK_MONOTONIC) if tries.zero?
          sleep(0.005)
          Process.clock_gettime(Process::CLOCK_MONOTONIC) - began < 0.5
        end
        database
      rescue SQLite3::Exception => e
        raise Faults.ended(e)
      end
    end

    # A URL.
    class UrlSource < Source
      SCHEMES = { "postgresql" => "postgresql", "postgres" => "postgresql", "mysql" => "mysql", "mysql2" => "mysql",
                  "mariadb" => "mysql", "sqlite" => "sqlite", "sqlite3" => "sqlite" }.freeze
      MYSQL_OPTIONS = %w[socket unix_socket sslca sslcert sslkey ssl_ca ssl_cert ssl_key connect_timeout read_timeout].freeze

      attr_reader :dialect

      def initialize(url)
        super()
        scheme, colon, @rest = url.partition("://")
        @dialect = SCHEMES[scheme] if colon == "://"
        if @dialect.nil?
          raise ConfigurationError.new("#{scheme.inspect} is no database that the guard knows.",
                                       remedy: Sources::TAKEN)
        end

        @url = url
      end

      # It cannot be seen whose transaction is open.
      def open_transaction
        nil
      end

      private

      def connect
        case dialect
        when "postgresql" then Drivers.postgresql(@url)
        when "mysql" then Drivers.mysql(**mysql_options)
        else Drivers.sqlite(URI::DEFAULT_PARSER.unescape(@rest.delete_prefix("/")))
        end
      end

      def mysql_options
        parts = URI.parse(@url)
        given = URI.decode_www_form(parts.query.to_s).to_h
        unknown = given.keys - MYSQL_OPTIONS - %w[charset encoding]
        if unknown.any?
          raise ConfigurationError,
                "The MySQL URL has the option #{unknown.first.inspect}, which the guard does not know."
        end

        options = given.slice(*MYSQL_OPTIONS).to_h do |name, value|
          [name.sub("unix_socket", "socket").sub("ssl_", "ssl").to_sym, name.end_with?("timeout") ? Integer(value) : value]
        end
        words = [parts.user, parts.password, parts.path.delete_prefix("/")].map do |each|
          each && URI.decode_www_form_component(each)
        end
        { host: parts.host, port: parts.port, username: words[0], password: words[1],
          database: words[2] }.compact.merge(options)
      end
    end

    # A connection of pg's: where it leads is asked, it is never used itself.
    class PgSource < Source
      def initialize(connection)
        super()
        @connection = connection
        @settings = connection.conninfo_hash.compact
      end

      def dialect
        "postgresql"
      end

      def open_transaction
        "the pg connection is in a transaction" unless @connection.transaction_status.zero?
      end

      private

      def connect
        Drivers.postgresql(@settings)
      end
    end

    # A client of mysql2's.
    class Mysql2Source < Source
      def initialize(client)
        super()
        @client = client
        @options = client.query_options.slice(:host, :hostname, :port, :username, :user, :password, :pass, :database, :dbname,
                                              :socket, :sock, :sslca, :sslcert, :sslkey, :ssl_mode, :connect_timeout)
      end

      def dialect
        "mysql"
      end

      def open_transaction
        "the mysql2 client is in a transaction, or not in autocommit" if Mysql2Session.new(@client, nil).transaction_open?
      end

      private

      def connect
        Drivers.mysql(**@options)
      end
    end

    # A database of sqlite3's.
    class SqliteSource < Source
      def initialize(database)
        super()
        @database = database
        @path = database.filename.to_s
      end

      def dialect
        "sqlite"
      end

      def open_transaction
        "the sqlite3 database is in a transaction" if @database.transaction_active?
      end

      private

      def connect
        Drivers.sqlite(@path)
      end
    end
  end
end
