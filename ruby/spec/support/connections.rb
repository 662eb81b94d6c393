# frozen_string_literal: true

# The callers' own connections, as applications have them.
module Connections
  module_function

  # A bare connection of the driver's, in autocommit.
  def open(url)
    source = Semel::Store::Sources.find(url)
    source.send(:connect)
  end

  def run(connection, text)
    case connection.class.name
    when "PG::Connection" then connection.exec(text).values
    when "Mysql2::Client" then connection.query(text, as: :array).to_a
    else connection.execute(text)
    end
  end

  def begin_text(connection)
    connection.instance_of?(Mysql2::Client) ? "START TRANSACTION" : "BEGIN"
  rescue NameError
    "BEGIN"
  end

  # ActiveRecord's configuration for a URL.
  def configuration(url)
    source = Semel::Store::Sources.find(url)
    case source.dialect
    when "postgresql"
      require "pg"
      { adapter: "postgresql", **PG::Connection.conninfo_parse(url).to_h do |each|
                                   [each[:keyword].to_sym, each[:val]]
                                 end.compact
                                               .transform_keys({ user: :username, dbname: :database }) }
    when "mysql" then { adapter: "mysql2", **source.send(:mysql_options) }
    else { adapter: "sqlite3", database: url.delete_prefix("sqlite3:///"), timeout: 200 }
    end
  end
end
