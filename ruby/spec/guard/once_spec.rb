# frozen_string_literal: true

require "spec_helper"

Databases::URLS.each_key do |dialect|
  RSpec.describe Semel::Once, "on #{dialect}" do
    include_context "with a database", dialect
    include_context "with charges"

    it "acts once and repeats what is stored" do
      expect([charge, charge, charge]).to eq(%w[charge-1 charge-1 charge-1])
      expect(effects.length).to eq(1)
      expect(state).to eq("completed acted")
      expect(stored.record(key)).to include(claims: "1", label: key, message: nil, result: '"charge-1"')
      expect(log.scan("INFO operation charge-order #{key}: repeat: completed (acted)").length).to eq(2)
    end

    it "stores the result of the block where op.done is not called" do
      result = 2.times.map { once.operation("plain", key: key) { { "id" => 7, list: [1, nil, 2.5, :x] } } }
      expect(result).to eq([{ "id" => 7, list: [1, nil, 2.5, :x] }, { "id" => 7, "list" => [1, nil, 2.5, "x"] }])
    end

    it "completes though the result cannot be stored" do
      expect(once.operation("plain", key: key) { Object.new }).to be_a(Object)
      expect(once.operation("plain", key: key) { raise "never" }).to be_nil
      expect(log).to include("its result is not stored")
      long = "x" * 70_000
      expect(once.operation("plain", key: [key, 2]) { long }).to eq(long)
      expect(once.operation("plain", key: [key, 2]) { raise "never" }).to be_nil
      expect(once.operation("plain", key: [key, 3], store_result: false) { 5 }).to eq(5)
      expect(once.operation("plain", key: [key, 3]) { raise "never" }).to be_nil
    end

    it "releases before acting, whatever the error is" do
      [RuntimeError.new("bug"), Interrupt.new, NotImplementedError.new].each do |error|
        expect { charge(fail_at: :claimed, error: error) }.to raise_error(error.class)
        expect(state).to eq("released")
      end
      expect(charge).to eq("charge-1")
      expect(stored.events(key)).to eq(%w[released released released])
      expect(log).to include("INFO operation charge-order #{key}: released: RuntimeError: bug")
    end

    it "stores what an error says, whatever bytes it has, and though its message fails" do
      broken = Class.new(StandardError) { define_method(:message) { raise "no message" } }
      ["caf\xe9 \0".b, "caf\u00e9".encode("ISO-8859-1"), "bad \xff", "x" * 5000].each do |message|
        expect { charge(fail_at: :claimed, error: RuntimeError.new(message)) }.to raise_error(RuntimeError)
        expect(state).to eq("released")
      end
      expect(stored.record(key)[:last_error].length).to eq(2000)
      expect { charge(fail_at: :claimed, error: broken.new) }.to raise_error(broken)
      expect(stored.record(key)[:last_error]).to include("its message raised RuntimeError")
    end

    it "holds what an uncertain error left, at the next delivery" do
      expect { charge(fail_at: :effect) }.to raise_error("boom")
      expect(state).to eq("claimed")
      expect(stored.record(key)).to include(unsure: "1", last_error: "RuntimeError: boom")
      expect { charge }.to raise_error(Semel::Held)
      expect { charge }.to raise_error(Semel::Held)
      expect(state).to eq("held")
      expect(effects.length).to eq(1)
      expect(stored.events(key)).to eq(%w[uncertain held refused])
      expect(log).to include("WARN operation charge-order #{key}: uncertain: RuntimeError: boom")
        .and include("operation charge-order #{key}: held: its handler raised after the point of no return: RuntimeError: boom")
    end

    it "releases where it certainly did not happen" do
      declined = Class.new(StandardError)
      expect { charge(fail_at: :inside, error: Semel::NotDone.new("no")) }.to raise_error(Semel::NotDone)
      expect(state).to eq("released")
      expect { charge(fail_at: :inside, error: declined.new, not_done: [declined]) }.to raise_error(declined)
      expect(state).to eq("released")
      expect(charge).to eq("charge-1")
    end

    it "changes nothing after op.done" do
      expect { charge(fail_at: :completed) }.to raise_error("boom")
      expect(state).to eq("completed acted")
      expect(charge).to eq("charge-1")
    end

    it "tells a second delivery how long to wait" do
      charge(lease: 40).then { nil }
      stored.change(key, state: "'claimed'", outcome: "NULL", completed_at: "NULL")
      expect { charge(lease: 40) }.to raise_error(Semel::InProgress) { |error|
                                        expect(error.retry_after).to be_between(30, 40)
                                      }
      expect(log).to include("in_progress: another attempt holds its lease")
    end

    it "refuses another payload before and after" do
      once.operation("charge-order", key: key, payload: { amount: 1 }) do
        expect { charge }.to raise_error(Semel::PayloadMismatch)
        1
      end
      expect { charge }.to raise_error(Semel::PayloadMismatch)
      expect(stored.events(key)).to eq(%w[refused refused])
      expect(once.operation("charge-order", key: key) { raise "never" }).to eq(1)
    end

    it "tells of another payload both fingerprints, and which message brought the first" do
      declared = once.declare("charge-order", acting: :explicit)
      first = Semel::Guard::Call.new(key: key, payload: { amount: 1 }, message: '{"adapter": "sidekiq", "jid": "b4a577"}')
      expect { once.deliver(declared, first) { |op| op.acting { raise IOError } } }.to raise_error(IOError)
      expect { charge }.to raise_error(Semel::PayloadMismatch) { |error|
        told = /fingerprint is (\h{16})…, the first one's (\h{16})…, which came as message b4a577 \(sidekiq\)/
        expect(error.message).to match(told)
        expect(error.message.match(told).captures.uniq.length).to eq(2)
      }
    end

    it "keeps look-alikes apart" do
      pairs = [[12, 3], [1, 23], "A", "a", "a ", "caf\u00e9", "cafe\u0301", 1, "1", BigDecimal("1.50")]
      pairs.each { |each| once.operation("alike", key: [key, *each], scope: key) { effects << each } }
      expect(effects.length).to eq(pairs.length)
      once.operation("alike", key: [key, BigDecimal("1.5")], scope: key) { effects << :again }
      expect(effects.length).to eq(pairs.length)
    end

    it "keeps scopes apart" do
      2.times { |tenant| 2.times { once.operation("charge", key: key, scope: "tenant #{tenant}") { effects << tenant } } }
      expect(effects).to eq([0, 1])
    end

    it "completes late where nobody took over, also out of held" do
      charged = once.operation("charge-order", key: key, payload: { amount: 100 }) do |op|
        stored.age(key)
        expect { charge }.to raise_error(Semel::Held)
        op.done("late")
      end
      expect(charged).to eq("late")
      expect(state).to eq("completed acted")
      expect(stored.events(key)).to eq(%w[held late_finish])
    end

    it "takes a completion whose acknowledgement was lost for one" do
      once.operation("charge-order", key: key) do |op|
        Semel::Guard::Ending.instance_method(:finish).then do
          stored.change(key, state: "'completed'", outcome: "'acted'", completed_at: ->(words) { words[:ago].call(0) })
        end
        expect(op.done(5)).to eq(5)
      end
      expect(stored.events(key)).to eq([])
    end

    it "extends, checks and shows what is left of the lease" do
      once.operation("charge-order", key: key, lease: 30) do |op|
        expect(op.lease_left).to be_between(25, 30)
        expect([op.attempt, op.completed?, op.connection]).to eq([1, false, nil])
        stored.age(key)
        op.extend
        op.check
        expect { once.operation("charge-order", key: key) { 0 } }.to raise_error(Semel::InProgress)
        op.extend(Comparable)
        expect(op).to be_a(Comparable)
      end
    end

    it "keeps the lease where it is to be extended, no longer than longest_run" do
      revision = -> { stored.record(key)[:revision].to_i }
      once.operation("charge-order", key: key, lease: 1.5, longest_run: 60, extend: true) do
        sleep(0.01) until revision.call >= 5 # four times, each after a third of the lease
        expect { once.operation("charge-order", key: key) { 0 } }.to raise_error(Semel::InProgress)
      end
      expect(state).to eq("completed acted")
      expect(stored.events(key)).to eq([])
    end

    it "keeps a lease for its longest run at most" do
      other = Semel.once(url, logger: logger)
      once.operation("charge-order", key: key, lease: 0.3, longest_run: 0.5, extend: true) do
        sleep(0.02) until log.include?("it runs longer than longest_run")
        sleep(0.35)
        expect { other.operation("charge-order", key: key) { 0 } }.to raise_error(Semel::Held)
      end
      other.close
    end

    it "refuses a second acting, and none where it was declared" do
      expect { charge(acting: :from_start).then { nil } }.not_to raise_error
      expect do
        once.operation("twice", key: key) { |op| 2.times { op.acting } }
      end.to raise_error(Semel::ConfigurationError, /second time/)
      expect do
        once.operation("never", key: key, acting: :explicit) { 5 }
      end.to raise_error(Semel::ConfigurationError, /without op.acting/)
      once.operation("again", key: key) { |op| 2.times { op.acting(again: true) } }
    end

    it "refuses to leave the block unsaid, and says what that means" do
      leave = lambda do |operation|
        once.operation(operation, key: key, acting: :explicit) do |op|
          op.acting
          break
        end
      end
      expect do
        catch(:out) { once.operation("thrown", key: key, acting: :explicit) { throw :out } }
      end.to raise_error(Semel::ConfigurationError, /left its block/)
      expect(state).to eq("released")
      expect { leave.call("broken") }.to raise_error(Semel::ConfigurationError, /left its block/)
      expect(log).to include("operation broken #{key}: uncertain")
      expect(catch(:out) { once.operation("done", key: key) { |op| op.done(1) && throw(:out, 5) } }).to eq(5)
    end

    it "ends in held at its limits" do
      3.times do
        stored.change(key, lease_until: ->(words) { words[:ago].call(1) })
        expect { charge(fail_at: :effect, effect: Semel::AcceptDuplicate.new(extra: 9)) }.to raise_error("boom")
      end
      expect { charge(effect: Semel::AcceptDuplicate.new(extra: 9)) }.to raise_error(Semel::Held)
      expect(effects.length).to eq(3)
    end

    it "tells what a person abandoned, and what is too old" do
      charge
      stored.change(key, outcome: "'abandoned'")
      expect { charge }.to raise_error(Semel::Abandoned)
      expect(log).to include("INFO operation charge-order #{key}: abandoned: completed (abandoned)")
      expect do
        once.operation("old", key: key, dated: Date.today - 90) { raise "never" }
      end.to raise_error(Semel::TooOld)
      expect(once.operation("old", key: key, dated: Date.today - 80) { 1 }).to eq(1)
      expect(once.operation("old", key: key, dated: Time.now - (200 * 86_400)) { raise "never" }).to eq(1)
      expect { once.operation("old", key: key, dated: "yesterday") { 0 } }.to raise_error(Semel::KeyRefused)
    end

    it "finds records under an older secret" do
      old = Semel::Secret.new("an old secret of 16", version: 1)
      new = Semel::Secret.new("a new secret of 16 b", version: 2)
      secretly = ->(**options) { Semel.once(url, logger: logger, **options) }
      expect(secretly.call.operation("rotate", key: key) { 1 }).to eq(1)
      expect(secretly.call(secret: old, older_secrets: [nil]).operation("rotate", key: key) { 2 }).to eq(1)
      expect(secretly.call(secret: old, older_secrets: [nil]).operation("rotate", key: [key, 2]) { 2 }).to eq(2)
      expect(secretly.call(secret: new, older_secrets: [old, nil]).operation("rotate", key: [key, 2]) { 3 }).to eq(2)
      keyed = Semel::Keys.key([key, 2], secret: old).digest
      row = stored.ask("SELECT label, key_version FROM #{stored.words[:operations]} WHERE #{stored.words[:key]} = '#{keyed}'")[0]
      expect([row[0], row[1].to_i]).to eq([nil, 1])
    end

    it "writes what an exception of another thread means before it goes on" do
      inside = Queue.new
      thread = Thread.new do
        once.operation("charge-order", key: key, payload: { amount: 100 }, acting: :explicit) do |op|
          op.acting do
            inside << true
            sleep
          end
        end
      end
      thread.report_on_exception = false
      inside.pop
      thread.raise(Interrupt)
      expect { thread.value }.to raise_error(Interrupt)
      expect(stored.record(key)).to include(state: "claimed", unsure: "1", last_error: "Interrupt: Interrupt")
    end

    it "writes what the end of a thread means" do
      inside = Queue.new
      thread = Thread.new do
        once.operation("charge-order", key: key, acting: :explicit) do
          inside << true
          sleep
        end
      end
      inside.pop
      thread.kill
      thread.join
      expect(state).to eq("released")
    end

    it "gives what interrupts while it writes no chance" do
      thread = nil
      watch = ->(at, name) { at == :after && %w[insert act complete].include?(name) && thread&.raise(Interrupt, name) }
      watched = Semel.once(url, logger: logger, watch: watch)
      thread = Thread.new do
        Thread.current.report_on_exception = false
        watched.operation("charge-order", key: key, acting: :explicit) { |op| op.acting { effects << 1 } }
      end
      expect { thread.value }.to raise_error(Interrupt, "insert")
      expect(state).to eq("released")
      expect(effects).to eq([])
      watched.close
    end

    it "lets one of eight act, and gives the others a defined answer" do
      10.times do |round|
        name = "#{key}-#{round}"
        start = Queue.new
        answers = Array.new(8) do
          Thread.new do
            start.pop
            once.operation("race", key: name) do
              effects << name
              sleep(0.02)
              :acted
            end
          rescue Semel::InProgress, Semel::Busy => e
            e.class
          end
        end
        8.times { start << true }
        told = answers.map(&:value)
        expect(told.count(:acted)).to eq(1)
        expect(told - [:acted, "acted", Semel::InProgress, Semel::Busy]).to eq([])
      end
      expect(effects.tally.values.uniq).to eq([1])
    end

    it "serves more threads than it has connections, and a forked process" do
      patiently = lambda do |number| # on a loaded machine SQLite's one writer may keep another waiting for too long
        once.operation("many", key: [key, number]) { number }
      rescue Semel::Busy
        retry
      end
      told = Array.new(16) { |number| Thread.new { patiently.call(number) } }.map(&:value)
      expect(told).to eq((0...16).to_a)
      reader, writer = IO.pipe
      pid = fork do
        writer.write(once.operation("many", key: [key, 3]) { "again" }.to_s)
        writer.close
        exit!(0)
      end
      Process.wait(pid)
      writer.close
      expect(reader.read).to eq("3")
      expect(once.operation("many", key: [key, 4]) { "again" }).to eq(4)
    end

    it "needs no session of the server's: each step on another connection, as behind a pooler (C31)" do
      own = once.instance_variable_get(:@place).instance_variable_get(:@own)
      own.define_singleton_method(:put_back) { |_, session, *| session.close }
      expect([charge, charge]).to eq(%w[charge-1 charge-1])
      expect { once.operation("pooled", key: key) { raise "no" } }.to raise_error("no")
      expect { once.operation("pooled", key: key) { 0 } }.to raise_error(Semel::Held)
    end

    it "needs a block, and what it declares to be possible" do
      expect { once.operation("x", key: key) }.to raise_error(ArgumentError)
      expect { charge(effect: :row) }.to raise_error(Semel::ConfigurationError)
      expect { charge(lease: 5, longest_run: 10) }.to raise_error(Semel::ConfigurationError, /shorter than its longest run/)
      expect { charge(acting: :maybe) }.to raise_error(Semel::ConfigurationError)
      expect { once.operation("", key: key) { 0 } }.to raise_error(Semel::ConfigurationError)
      expect { once.operation("x", key: key, scope: "x" * 256) { 0 } }.to raise_error(Semel::KeyRefused)
      expect { once.operation("x", key: key, scope: "\xff") { 0 } }.to raise_error(Semel::KeyRefused)
      expect { once.operation("a\0b", key: key) { 0 } }.to raise_error(Semel::ConfigurationError)
      expect { once.operation("x", key: key, on: Object.new) { 0 } }.to raise_error(Semel::UnsafeClaim)
    end
  end
end
