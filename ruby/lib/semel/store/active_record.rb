# frozen_string_literal: true

module Semel
  module Store
    # A connection class of ActiveRecord's, such as ActiveRecord::Base. The guard takes from it where the database is and
    # opens connections of its own; a +Row+ is written on the one that the class has for this thread.
    #
    # The statements go to the driver's connection below ActiveRecord: no query cache answers them, and no logger prints them.
    class ActiveRecordSource < Source
      ADAPTERS = { "PostgreSQL" => "postgresql", "PostGIS" => "postgresql", "Mysql2" => "mysql", "SQLite" => "sqlite" }.freeze
      DIALECTS = { "postgresql" => "postgresql", "postgis" => "postgresql", "mysql2" => "mysql",
                   "sqlite3" => "sqlite" }.freeze

      # Whether a connection is one of ActiveRecord's.
      def self.connection?(connection)
        defined?(::ActiveRecord::ConnectionAdapters::AbstractAdapter) &&
          connection.is_a?(::ActiveRecord::ConnectionAdapters::AbstractAdapter)
      end

      # The transaction that the caller began on it, in words. One that tests are wrapped in cannot be joined, and does not
      # count.
      def self.open_transaction(connection)
        current = connection.current_transaction
        "ActiveRecord is in a transaction" if current.open? && current.joinable?
      end

      # The driver's connection, with a transaction that ActiveRecord has put off begun on it.
      def self.driver_of(connection)
        unless ADAPTERS.key?(connection.adapter_name)
          raise ConfigurationError.new("The guard does not speak over ActiveRecord's adapter #{connection.adapter_name}.",
                                       remedy: "There are: #{ADAPTERS.keys.join(", ")}.")
        end
        connection.raw_connection
      end

      def initialize(target)
        super()
        @target = target
      end

      def dialect
        DIALECTS.fetch(configuration[:adapter].to_s) do |adapter|
          raise ConfigurationError.new("The guard does not speak over ActiveRecord's adapter #{adapter}.",
                                       remedy: "There are: #{DIALECTS.keys.join(", ")}.")
        end
      end

      # The connection that the class has for this thread.
      def connection
        @target.respond_to?(:lease_connection) ? @target.lease_connection : @target.connection
      end

      # A transaction of ActiveRecord's, or a savepoint in the one that is open, on the connection that models write on.
      def within_transaction
        @target.transaction(requires_new: true) { yield connection }
      end

      def open_transaction
        return nil unless @target.connection_pool.active_connection?

        self.class.open_transaction(connection)
      end

      private

      def configuration
        @target.connection_db_config.configuration_hash
      end

      def connect
        case dialect
        when "postgresql" then Drivers.postgresql(postgresql_options)
        when "mysql" then Drivers.mysql(**configuration.except(:adapter, :pool, :encoding, :flags, :reconnect, :variables))
        else Drivers.sqlite(path)
        end
      end

      def postgresql_options
        named = configuration.compact.transform_keys({ username: :user, database: :dbname })
        require "pg"
        named.slice(*PG::Connection.conndefaults_hash.keys)
      end

      def path
        given = configuration[:database].to_s
        return given if given.empty? || given == ":memory:" || given.start_with?("file:")

        root = defined?(::Rails.root) ? ::Rails.root : nil
        root ? File.expand_path(given, root) : given
      end
    end
  end
end
