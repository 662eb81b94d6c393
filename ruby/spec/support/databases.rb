# frozen_string_literal: true

require "logger"
require "stringio"

# The databases that the Python test which runs these made: their URLs are in the environment.
module Databases
  URLS = %w[postgresql mysql sqlite].to_h do |dialect|
    [dialect, ENV.fetch("SEMEL_SPEC_#{dialect.upcase}", nil)]
  end.compact.freeze

  # What one database holds, looked at and arranged on a connection of the spec's own.
  class Stored
    WORDS = {
      "postgresql" => { operations: "semel.operations", events: "semel.operation_events", key: "encode(key, 'hex')",
                        ago: ->(seconds) { "clock_timestamp() - make_interval(secs => #{seconds})" } },
      "mysql" => { operations: "semel_operations", events: "semel_operation_events", key: "lower(hex(`key`))",
                   ago: ->(seconds) { "UTC_TIMESTAMP(6) - INTERVAL #{seconds} SECOND" } },
      "sqlite" => { operations: "semel_operations", events: "semel_operation_events", key: "CAST(key AS TEXT)",
                    ago: ->(seconds) { "(julianday('now') - 2440587.5) * 86400.0 - (#{seconds})" } }
    }.freeze
    COLUMNS = %w[state outcome revision claim claims unsure takeovers looks extra_used reference generation result last_error
                 message label key_version].freeze

    def initialize(url)
      @source = Semel::Store::Sources.find(url)
      @session = @source.open(Semel::Store::Statements.new(@source.dialect))
    end

    def ask(text)
      @session.run_text(text)
    end

    def words
      WORDS.fetch(@source.dialect)
    end

    def record(key)
      rows = ask("SELECT #{COLUMNS.join(", ")} FROM #{words[:operations]} WHERE #{words[:key]} = '#{digest(key)}'")
      rows.empty? ? nil : COLUMNS.map(&:to_sym).zip(rows[0].map { |value| value.is_a?(Integer) ? value.to_s : value }).to_h
    end

    def change(key, **columns)
      sets = columns.map { |name, value| "#{name} = #{value.is_a?(Proc) ? value.call(words) : value}" }
      ask("UPDATE #{words[:operations]} SET #{sets.join(", ")} WHERE #{words[:key]} = '#{digest(key)}'")
    end

    # Lets the claim's lease have ended, that many seconds ago.
    def age(key, seconds = 0.01)
      change(key, lease_until: ->(words) { words[:ago].call(seconds) })
    end

    def events(key)
      ask("SELECT event FROM #{words[:events]} WHERE operation_id = (SELECT id FROM #{words[:operations]} " \
          "WHERE #{words[:key]} = '#{digest(key)}') ORDER BY id").map(&:first)
    end

    def count
      ask("SELECT count(*) FROM #{words[:operations]}")[0][0].to_i
    end

    def close
      @session.close
    end

    private

    def digest(key)
      Semel::Keys.key(key).digest
    end
  end
end

# Every database in its turn: url, stored (what it holds), log (lines of the guard), once.
RSpec.shared_context "with a database" do |dialect|
  let(:url) { Databases::URLS.fetch(dialect) }
  let(:stored) { Databases::Stored.new(url) }
  let(:lines) { StringIO.new }
  let(:logger) { Logger.new(lines, formatter: ->(severity, _, _, message) { "#{severity} #{message}\n" }) }
  let(:once) { Semel.once(url, logger: logger) }
  let(:key) { "op-#{SecureRandom.hex(6)}" }

  after do
    once.close
    stored.close
  end

  def log
    lines.string
  end

  def state
    record = stored.record(key)
    record && [record[:state], record[:outcome]].compact.join(" ")
  end
end
