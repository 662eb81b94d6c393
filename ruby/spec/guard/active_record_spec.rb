# frozen_string_literal: true

require "spec_helper"
require "active_record"

# ActiveRecord as Rails has it, over each database.
Databases::URLS.each_key do |dialect|
  RSpec.describe "ActiveRecord on #{dialect}" do
    include_context "with a database", dialect

    let(:base) do
      # each database has a connection class of its own, as applications with several databases have
      Class.new(ActiveRecord::Base) do
        self.abstract_class = true
        define_singleton_method(:name) { "Records#{object_id}" }
      end
    end
    let(:once) { Semel.once(base, logger: logger) }
    let(:table) { "credits_#{SecureRandom.hex(4)}" }
    let(:model) do
      named = table
      Class.new(base) do
        self.table_name = named
        self.inheritance_column = :none
        define_singleton_method(:name) { "Credit" }
      end
    end

    before do
      base.establish_connection(Connections.configuration(url))
      base.connection.create_table(table) { |columns| columns.string(:customer) }
    end

    after { base.connection_pool.disconnect! }

    def credit(on: nil)
      once.operation("give-credit", key: key, effect: Semel::Row.new, on: on) do |op|
        model.create!(customer: "ada")
        yield op if block_given?
        "credited"
      end
    end

    it "acts once for an outside effect, on connections of the guard's own" do
      effects = []
      2.times { once.operation("charge", key: key, acting: :explicit) { |op| op.acting { effects << op.reference } && nil } }
      expect([effects.length, state]).to eq([1, "completed acted"])
      expect(base.connection.transaction_open?).to be(false)
    end

    it "refuses an outside effect in a transaction of the caller's" do
      base.transaction do
        model.create!(customer: "own")
        expect { once.operation("charge", key: key) { 0 } }.to raise_error(Semel::UnsafeClaim, /in a transaction/)
      end
      expect(once.operation("charge", key: key) { 1 }).to eq(1)
    end

    it "says so where ActiveRecord::Rollback undid a Row: it is not a success" do
      expect { credit { raise ActiveRecord::Rollback } }.to raise_error(Semel::ConfigurationError, /Rollback/)
      expect([model.count, credit, model.count]).to eq([0, "credited", 1])
    end

    it "writes a Row in one commit with the models" do
      expect([credit, credit]).to eq(%w[credited credited])
      expect([model.count, state]).to eq([1, "completed acted"])
    end

    it "joins the caller's transaction, put off or not" do
      base.transaction do
        credit
        raise ActiveRecord::Rollback
      end
      expect([model.count, state]).to eq([0, nil])
      base.transaction do
        model.create!(customer: "own")
        expect(credit(on: base.connection)).to eq("credited")
      end
      expect([model.count, state]).to eq([2, "completed acted"])
    end

    it "rolls back what an exception left, and lets the caller's transaction go on" do
      base.transaction do
        model.create!(customer: "own")
        expect { credit { raise "no" } }.to raise_error("no")
      end
      expect([model.pluck(:customer), state]).to eq([["own"], nil])
    end

    it "refuses a connection without a transaction" do
      expect { credit(on: base.connection) }.to raise_error(Semel::UnsafeClaim, /three commits/)
    end

    it "reads past the query cache" do
      base.cache do
        once.operation("charge", key: key) { 1 }
        expect(once.operation("charge", key: key) { 2 }).to eq(1)
        expect([credit, credit]).to eq(%w[credited credited])
        stored.change(key, result: "'9'")
        expect(credit).to eq(9)
      end
    end

    it "lets a Row read what there is now, and not what the query cache had before" do
      insert = -> { stored.ask("INSERT INTO #{table} (id, customer) VALUES (7, 'bob')") }
      base.cache do
        expect(model.count).to eq(0)
        insert.call
        expect(model.count).to eq(0) # ActiveRecord's own answer
        expect(once.operation("count", key: key, effect: Semel::Row.new) { model.count }).to eq(1)
      end
    end

    it "takes no notice of the transaction that a test is wrapped in" do
      base.connection.begin_transaction(joinable: false, _lazy: false)
      expect(once.operation("charge", key: [key, 1]) { 1 }).to eq(1) unless dialect == "sqlite" # one writer a file
      once.inside_transaction(base.connection) do
        2.times { expect(once.operation("in test", key: key) { 2 }).to eq(2) }
        expect(credit).to eq("credited")
        expect { once.operation("fails", key: key, acting: :explicit) { raise "no" } }.to raise_error("no")
      end
      base.connection.rollback_transaction
      expect([model.count, state]).to eq([0, nil])
      expect(once.operation("in test", key: key) { 3 }).to eq(3)
    end

    it "runs where the pool has one connection, held by this thread" do
      base.establish_connection(**Connections.configuration(url), pool: 1)
      base.connection
      expect(once.operation("charge", key: key) { 1 }).to eq(1)
      expect(Array.new(3) { Thread.new { once.operation("charge", key: key) { 2 } } }.map(&:value)).to eq([1, 1, 1])
    end

    it "leaves no trace of its savepoints where the block saves in several" do
      credit { base.transaction(requires_new: true) { model.create!(customer: "inner") } }
      expect([model.count, state]).to eq([2, "completed acted"])
    end
  end
end
