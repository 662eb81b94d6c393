# frozen_string_literal: true

require "English"
require "spec_helper"

Databases::URLS.each_key do |dialect|
  RSpec.describe Semel::Row, "on #{dialect}" do
    include_context "with a database", dialect

    let(:connection) { Connections.open(url) }
    let(:table) { "credits_#{SecureRandom.hex(4)}" }

    before { sql("CREATE TABLE #{table} (customer varchar(20))") }
    after { connection.close }

    def sql(text, on = connection)
      Connections.run(on, text)
    end

    def count
      sql("SELECT count(*) FROM #{table}")[0][0].to_i
    end

    # The caller's transaction, in which the row is given its credit.
    def transaction(on = connection)
      sql(Connections.begin_text(on), on)
      result = yield
      sql("COMMIT", on)
      result
    rescue StandardError
      sql("ROLLBACK", on)
      raise
    end

    def credit(on: nil, guard: once)
      guard.operation("give-credit", key: key, payload: { amount: 1 }, effect: described_class.new, on: on) do |op|
        sql("INSERT INTO #{table} VALUES ('ada')", op.connection)
        yield op if block_given?
        "credited"
      end
    end

    it "is one commit with the caller's own" do
      expect(transaction { credit(on: connection) }).to eq("credited")
      expect(transaction { credit(on: connection) }).to eq("credited")
      expect([count, state]).to eq([1, "completed acted"])
    end

    it "is one rollback with the caller's own" do
      expect do
        transaction do
          credit(on: connection)
          raise "later"
        end
      end.to raise_error("later")
      expect([count, state]).to eq([0, nil])
      transaction { credit(on: connection) }
      expect([count, state]).to eq([1, "completed acted"])
    end

    it "begins a transaction of its own where it is given none" do
      expect([credit, credit]).to eq(%w[credited credited])
      expect([count, state]).to eq([1, "completed acted"])
      expect do
        once.operation("fails", key: key, effect: described_class.new) do |op|
          sql("INSERT INTO #{table} VALUES ('x')", op.connection) and raise "no"
        end
      end
        .to raise_error(RuntimeError)
      expect(count).to eq(1)
    end

    it "refuses a connection without a transaction" do
      expect { credit(on: connection) }.to raise_error(Semel::UnsafeClaim, /three commits/)
      expect([count, state]).to eq([0, nil])
    end

    it "refuses a connection to another database, which has tables too" do
      other = ENV.fetch("SEMEL_SPEC_OTHER_#{dialect.upcase}", nil)
      skip "no other database was made" if other.nil?

      elsewhere = Connections.open(other)
      sql(Connections.begin_text(elsewhere), elsewhere)
      expect { credit(on: elsewhere) }.to raise_error(Semel::UnsafeClaim, /another database/)
      sql("ROLLBACK", elsewhere)
      elsewhere.close
      expect([count, state]).to eq([0, nil])
    end

    it "is busy where a rival's transaction has the key, and waits for nobody" do
      rival = Connections.open(url)
      transaction do
        credit(on: connection)
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        expect { credit }.to raise_error(Semel::Busy)
        expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).to be < 5
      end
      expect(transaction(rival) { credit(on: rival) }).to eq("credited")
      expect(count).to eq(1)
      rival.close
    end

    it "is held where the block committed midway" do
      expect do
        transaction do
          credit(on: connection) do
            sql("COMMIT")
            sql(Connections.begin_text(connection))
          end
        end
      end.to raise_error(Semel::ClaimLost, /commit midway/)
      stored.age(key)
      expect { credit }.to raise_error(Semel::Held)
      expect([count, state]).to eq([1, "held"])
    end

    it "refuses another payload in the caller's transaction, which goes on" do
      credit
      transaction do
        sql("INSERT INTO #{table} VALUES ('own')")
        expect do
          once.operation("give-credit", key: key, payload: { amount: 2 }, effect: described_class.new, on: connection) { 0 }
        end.to raise_error(Semel::PayloadMismatch)
      end
      expect(count).to eq(2)
    end

    it "rolls back where the block is left by throw" do
      expect do
        catch(:out) { credit { throw :out } }
      end.to raise_error(Semel::ConfigurationError, /left its block/)
      expect([count, state]).to eq([0, nil])
    end

    it "shares the record with an outside effect of the same name" do
      once.operation("give-credit", key: key, payload: { amount: 1 }) { "outside" }
      expect(credit).to eq("outside")
      expect(count).to eq(0)
    end

    it "refuses an outside effect while what it was given is in a transaction" do
      guard = Semel.once(connection, logger: logger)
      transaction do
        expect { guard.operation("out", key: key) { 0 } }.to raise_error(Semel::UnsafeClaim, /transaction/)
      end
      expect(guard.operation("out", key: key) { 5 }).to eq(5)
      guard.close
    end

    if dialect == "postgresql"
      ["REPEATABLE READ", "SERIALIZABLE"].each do |level|
        it "claims in a savepoint at #{level}, and answers conflicts so that the caller's rows survive" do
          sql("BEGIN ISOLATION LEVEL #{level}")
          sql("INSERT INTO #{table} VALUES ('own')")
          credit # by another connection, after this snapshot
          expect { credit(on: connection) }.to raise_error(Semel::RetryTransaction)
          expect(log).to include("WARN operation give-credit #{key}: retry_transaction: ")
          sql("COMMIT")
          expect(count).to eq(2)
          sql("BEGIN ISOLATION LEVEL #{level}")
          expect(credit(on: connection)).to eq("credited")
          sql("COMMIT")
          expect(count).to eq(2)
        end
      end

      it "makes its own connections READ COMMITTED whatever the server's default is" do
        guard = Semel.once("#{url}#{url.include?("?") ? "&" : "?"}options=-c%20default_transaction_isolation%3Dserializable",
                           logger: logger)
        told = Array.new(4) { Thread.new { guard.operation("strict", key: key) { 1 } rescue $ERROR_INFO.class } }.map(&:value) # rubocop:disable Style/RescueModifier
        expect(told - [1, Semel::InProgress]).to eq([])
        guard.close
      end
    end

    it "refuses a server that takes no writes" do
      guard = case dialect
              when "postgresql" then Semel.once(
                "#{url}#{url.include?("?") ? "&" : "?"}options=-c%20default_transaction_read_only%3Don", logger: logger
              )
              when "sqlite"
                File.chmod(0o444, url.delete_prefix("sqlite3:///"))
                skip "root writes to every file" if Process.uid.zero?
              else skip "its server is everybody's"
              end
      expect { guard.operation("x", key: key) { 0 } }.to raise_error(Semel::UnsafeClaim, /no writes/)
    ensure
      File.chmod(0o644, url.delete_prefix("sqlite3:///")) if dialect == "sqlite"
    end

    it "says that its tables are missing" do
      guard = case dialect
              when "postgresql" then Semel.once(url, schema: "nowhere", logger: logger)
              when "mysql" then Semel.once(url.sub(%r{/test_\w+}, "/mysql"), logger: logger)
              else Semel.once("sqlite3:////#{Dir.mktmpdir}/empty.db", logger: logger)
              end
      expect { guard.operation("x", key: key) { 0 } }.to raise_error(Semel::SchemaMismatch)
    end

    it "says that the database cannot be reached" do
      away = { "postgresql" => "postgresql://127.0.0.1:9/x", "mysql" => "mysql2://127.0.0.1:9/x",
               "sqlite" => "sqlite3:////nowhere/at/all.db" }
      expect { Semel.once(away.fetch(dialect), logger: logger).operation("x", key: key) { 0 } }
        .to raise_error(Semel::DatabaseUnreachable)
    end
  end
end

RSpec.describe "Semel.once without a database" do
  around do |example|
    before = ENV.fetch("SEMEL_DATABASE_URL", nil)
    example.run
  ensure
    ENV["SEMEL_DATABASE_URL"] = before
  end

  it "takes the one of SEMEL_DATABASE_URL, and says so where there is none" do
    ENV["SEMEL_DATABASE_URL"] = "mongodb://nowhere"
    expect { Semel.once }.to raise_error(Semel::ConfigurationError, /mongodb/)
    ENV["SEMEL_DATABASE_URL"] = "sqlite3:////tmp/never-opened.db"
    expect(Semel.once).to be_a(Semel::Once)
    [" ", nil].each do |unset|
      ENV["SEMEL_DATABASE_URL"] = unset
      expect { Semel.once }.to raise_error(Semel::ConfigurationError, /SEMEL_DATABASE_URL is not set/)
    end
  end
end

RSpec.describe Semel::Store::Sources do
  it "refuses what leads to no database" do
    [Object.new, "shop", "oracle://x", :default, nil].each do |target|
      expect { described_class.find(target) }.to raise_error(Semel::ConfigurationError)
    end
    expect { Semel.once("sqlite3::memory:") }.to raise_error(Semel::ConfigurationError)
    expect do
      Semel.once("mysql2://h/d?what=1").operation("x", key: 1) do
        0
      end
    end.to raise_error(Semel::ConfigurationError, /what/)
  end
end
