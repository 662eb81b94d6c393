# frozen_string_literal: true

require "spec_helper"
require "semel/sidekiq"

REDIS_URL = ENV.fetch("SEMEL_SPEC_REDIS", nil)

if REDIS_URL && Databases::URLS.key?("postgresql")
  Redis.silence_deprecations = true if defined?(Redis.silence_deprecations)
  ENV["REDIS_URL"] = REDIS_URL
  Sidekiq.strict_args!(:warn) if Sidekiq.respond_to?(:strict_args!) && Sidekiq::VERSION.to_i >= 7

  RSpec.describe Semel::Sidekiq::Middleware do
    include_context "with a database", "postgresql"

    let(:middleware) { described_class.new(once) }
    let(:effects) { [] }
    let(:jid) { SecureRandom.hex(12) }

    before { Sidekiq.redis(&:flushdb) }

    # A job class, named so that Redis can name it.
    def job_class(name = "Job#{SecureRandom.hex(4)}", &body)
      made = Class.new do
        include Sidekiq::Worker
        include Semel::Sidekiq::Job
        class_eval(&body)
      end
      stub_const_for(name, made)
    end

    def stub_const_for(name, made)
      Object.const_set(name, made)
      made
    end

    # A delivery, as Sidekiq's processor makes it.
    def deliver(made, args, **fields)
      job = { "class" => made.name, "jid" => jid, "args" => args, "queue" => "default", "retry" => true, "created_at" => 1.5 }
      job.merge!(fields.transform_keys(&:to_s))
      instance = made.new
      instance.jid = jid
      middleware.call(instance, job, "default") { instance.perform(*args) }
    end

    def scheduled
      Sidekiq::ScheduledSet.new.map { |each| [each.item, each.score] }
    end

    def dead
      Sidekiq::DeadSet.new.map(&:item)
    end

    def charging(**options, &block)
      into = effects
      given = { key: :order, payload: [:amount], acting: :explicit }.merge(options)
      job_class do
        semel_once "charge-order", **given
        define_method(:perform) do |order, amount|
          op.acting { into << [order, amount, op.reference] }
          instance_exec(&block) if block
          op.done("charge #{order}")
        end
      end
    end

    it "acts once, and a repeat returns" do
      made = charging
      expect(deliver(made, [key, 5])).to eq("charge #{key}")
      expect(deliver(made, [key, 5])).to eq("charge #{key}")
      expect(effects.length).to eq(1)
      expect([scheduled, dead]).to eq([[], []])
    end

    it "pushes the same job with its retry count again where it is in progress, and does not run it" do
      made = charging(lease: 30)
      deliver(made, [key, 5])
      stored.change(key, state: "'claimed'", outcome: "NULL", completed_at: "NULL", token: "'x'")
      expect(deliver(made, [key, 5], retry_count: 3, failed_at: 7.5, error_message: "before")).to be_nil
      (item, at), = scheduled
      expect(item).to include("jid" => jid, "retry_count" => 3, "args" => [key, 5], "failed_at" => 7.5, "created_at" => 1.5,
                              "queue" => "default", "retry" => true)
      expect(at - Time.now.to_f).to be_between(25, 40)
      expect(effects.length).to eq(1)
      expect(log).to include("in_progress").and include("pushed again in")
    end

    it "waits a minute at most" do
      made = charging(lease: "1 h")
      deliver(made, [key, 5])
      stored.change(key, state: "'claimed'", outcome: "NULL", completed_at: "NULL", token: "'x'")
      deliver(made, [key, 5])
      expect(scheduled[0][1] - Time.now.to_f).to be_between(58, 60)
    end

    it "lets client middleware see what is pushed again" do
      seen = []
      watcher = Class.new { define_method(:call) { |_, job, *, &go| seen << job["jid"] and go.call } }
      Sidekiq.configure_client { |config| config.client_middleware { |chain| chain.add watcher } }
      made = charging
      deliver(made, [key, 5])
      stored.change(key, state: "'claimed'", outcome: "NULL", completed_at: "NULL", token: "'x'")
      deliver(made, [key, 5])
      expect(seen).to eq([jid])
    ensure
      Sidekiq.configure_client { |config| config.client_middleware { |chain| chain.remove watcher } }
    end

    # Client middleware that stops each job, as gems for unique jobs do.
    def stopping_all
      made = Class.new { define_method(:call) { |*| false } }
      Sidekiq.configure_client { |config| config.client_middleware { |chain| chain.add made } }
      yield
    ensure
      Sidekiq.configure_client { |config| config.client_middleware { |chain| chain.remove made } }
    end

    def in_progress(made, arguments)
      deliver(made, arguments)
      stored.change(key, state: "'claimed'", outcome: "NULL", completed_at: "NULL", token: "'x'")
    end

    it "loses none that client middleware stops: this message is all that there is" do
      made = charging(lease: 30)
      in_progress(made, [key, 5])
      stopping_all { expect(deliver(made, [key, 5], retry_count: 3)).to be_nil }
      (item, at), = scheduled
      expect(item).to include("jid" => jid, "retry_count" => 3, "args" => [key, 5], "queue" => "default")
      expect(at - Time.now.to_f).to be_between(25, 40)
    end

    it "never stores an argument readable that was encrypted" do
      made = charging(lease: 30)
      in_progress(made, [key, 5])
      stopping_all { expect { deliver(made, [key, 5], encrypt: true) }.to raise_error(Semel::InProgress) }
      stored.change(key, state: "'completed'", outcome: "'acted'", completed_at: "now()")
      expect { deliver(made, [key, 6], encrypt: true) }.to raise_error(Semel::PayloadMismatch)
      expect([scheduled, dead]).to eq([[], []])
    end

    it "raises the answer in tests that run jobs where they are pushed" do
      require "sidekiq/testing"
      Sidekiq::Testing.disable!
      made = charging
      deliver(made, [key, 5])
      stored.change(key, state: "'claimed'", outcome: "NULL", completed_at: "NULL", token: "'x'")
      Sidekiq::Testing.inline! { expect { deliver(made, [key, 5]) }.to raise_error(Semel::InProgress) }
      expect(deliver(made, [key, 5])).to be_nil
    ensure
      Sidekiq::Testing.disable!
    end

    it "returns where it is held or abandoned" do
      made = charging { raise IOError, "lost the answer" }
      expect { deliver(made, [key, 5]) }.to raise_error(IOError)
      expect(deliver(made, [key, 5])).to be_nil
      expect(state).to eq("held")
      expect(deliver(made, [key, 5])).to be_nil
      stored.change(key, state: "'completed'", outcome: "'abandoned'", completed_at: "now()")
      expect(deliver(made, [key, 5])).to be_nil
      expect([scheduled, dead, effects.length]).to eq([[], [], 1])
      expect(log).to include("is held").and include("was abandoned by a person")
    end

    it "buries what never succeeds, and tells the death handlers" do
      told = []
      handler = ->(job, error) { told << [job["jid"], error.class] }
      handlers = Sidekiq.respond_to?(:death_handlers) ? Sidekiq.death_handlers : Sidekiq.default_configuration.death_handlers
      handlers << handler
      made = charging
      deliver(made, [key, 5])
      expect(deliver(made, [key, 6], retry_count: 2)).to be_nil
      expect(deliver(made, ["", 6])).to be_nil
      expect(dead.map { |each| each["error_class"] }).to contain_exactly("Semel::PayloadMismatch", "Semel::KeyRefused")
      expect(dead.map { |each| each["args"] }).to contain_exactly([key, 6], ["", 6])
      expect(told.map(&:first)).to eq([jid, jid])
      expect(effects.length).to eq(1)
    ensure
      handlers&.delete(handler)
    end

    it "buries one that is older than records are kept" do
      made = charging(dated: ->(_, amount) { Date.today - amount })
      expect(deliver(made, [key, 100])).to be_nil
      expect(dead.map { |each| each["error_class"] }).to eq(["Semel::TooOld"])
    end

    it "pushes an attempt that lost its claim again, to ask the record" do
      records = stored
      made = charging do
        records.change(op.request.label, token: "'x'")
        op.check
      end
      expect(deliver(made, [key, 5])).to be_nil
      expect(scheduled.length).to eq(1)
    end

    it "lets the job's own exceptions through, after it wrote what they mean" do
      made = charging { raise IOError, "no" }
      expect { deliver(made, [key, 5]) }.to raise_error(IOError)
      expect(stored.record(key)).to include(state: "claimed", unsure: "1")
      stopped = charging { raise Sidekiq::Shutdown }
      expect { deliver(stopped, ["#{key}-2", 5]) }.to raise_error(Sidekiq::Shutdown)
      expect(stored.record("#{key}-2")).to include(state: "claimed", unsure: "1",
                                                   last_error: "Sidekiq::Shutdown: Sidekiq::Shutdown")
      before = job_class do
        semel_once("early", key: 0, payload: [], acting: :explicit) && define_method(:perform) do |_|
          raise Sidekiq::Shutdown
        end
      end
      expect { deliver(before, ["#{key}-3"]) }.to raise_error(Sidekiq::Shutdown)
      expect(stored.record("#{key}-3")).to include(state: "released")
      expect([scheduled, dead]).to eq([[], []])
    end

    it "raises what the database wants to be run again" do
      made = job_class do
        semel_once("row", key: 0, payload: []) && define_method(:perform) do |_|
          raise Semel::RetryTransaction, "again"
        end
      end
      expect { deliver(made, [key]) }.to raise_error(Semel::RetryTransaction)
    end

    it "keeps how to send the job again, and no trace of what it failed with" do
      made = charging do
        raise IOError
      end
      expect do
        deliver(made, [key, 5], retry_count: 4, error_class: "X", enqueued_at: 2, tags: ["a"])
      end.to raise_error(IOError)
      expect { once.deliver(made.semel_declared.declaration, Semel::Guard::Call.new(key: key)) { 0 } }
        .to raise_error(Semel::Held) { |error| expect(error.message_kept).to be(true) }
      message = JSON.parse(stored.record(key)[:message])
      expect(message).to eq("adapter" => "sidekiq", "class" => made.name, "jid" => jid, "args" => [key, 5], "queue" => "default",
                            "retry" => true, "created_at" => 1.5, "tags" => ["a"])
    end

    it "keeps no message that PostgreSQL does not take, and is guarded all the same" do
      made = job_class do
        semel_once("nul", key: 0, payload: [])
        define_method(:perform) { |_, _| raise IOError }
      end
      expect { deliver(made, [key, "a\0b"]) }.to raise_error(IOError)
      expect(stored.record(key)).to include(message: nil, state: "claimed")
    end

    it "says nothing about what perform happens to return" do
      made = job_class { semel_once("any", key: 0, payload: []) && define_method(:perform) { |_| Object.new } }
      2.times { expect(deliver(made, [key])).to be_nil }
      expect(stored.record(key)).to include(state: "completed", result: nil)
      expect(log).not_to include("not stored")
    end

    it "keeps no message whose last argument was encrypted" do
      made = charging { raise IOError }
      expect { deliver(made, [key, 5], encrypt: true) }.to raise_error(IOError)
      expect(stored.record(key)[:message]).to be_nil
    end

    it "makes keys of names, positions and lambdas" do
      { by_name: :order, by_place: 0, by_list: [:order, 1], by_lambda: ->(order) { [order, "x"] },
        by_rest: ->(*all) { all } }.each do |type, source|
        made = job_class do
          semel_once type.to_s, key: source, payload: ->(_, amount = 3) { { amount: amount } }, scope: ->(order) { order }
          define_method(:perform) { |order, amount = 3| "#{order} #{amount}" }
        end
        expect(deliver(made, [key, 3])).to eq("#{key} 3")
        expect(deliver(made, [key])).to eq("#{key} 3") unless %i[by_list by_rest].include?(type)
      end
      expect(stored.ask("SELECT DISTINCT scope FROM semel.operations WHERE scope = '#{key}'").length).to eq(1)
    end

    it "refuses names that perform does not have, and defaults that it cannot see" do
      wrong = job_class { semel_once("w", key: :nobody, payload: []) && define_method(:perform) { |order| order } }
      expect { deliver(wrong, [key]) }.to raise_error(Semel::ConfigurationError, /There are: order/)
      hidden = job_class do
        semel_once("h", key: :order, payload: [:amount]) && define_method(:perform) do |order, amount = 5|
          [order, amount]
        end
      end
      expect(deliver(hidden, [key])).to be_nil
      expect(dead[0]["error_message"]).to include("default cannot be seen")
    end

    it "does not run a guarded job where the middleware is missing" do
      made = charging
      expect { made.new.perform(key, 5) }.to raise_error(Semel::ConfigurationError, /without the guard/)
      expect(effects).to eq([])
    end

    it "guards what inherits, and leaves the others alone" do
      parent = charging
      child = stub_const_for("Child#{SecureRandom.hex(4)}", Class.new(parent))
      deliver(parent, [key, 5])
      deliver(child, [key, 5])
      expect(effects.length).to eq(1)
      plain = Class.new { include Sidekiq::Worker and define_method(:perform) { |*args| args } }
      expect(deliver(stub_const_for("Plain#{SecureRandom.hex(4)}", plain), [1, 2])).to eq([1, 2])
    end

    it "answers a job that guards a block by itself likewise" do
      guard = once
      made = stub_const_for("Own#{SecureRandom.hex(4)}", Class.new do
        include Sidekiq::Worker
        define_method(:perform) { |order| guard.operation("own", key: order, payload: { jid: jid }) { 1 } }
      end)
      deliver(made, [key])
      stored.change(key, fingerprint: "'#{"0" * 64}'")
      expect(deliver(made, [key])).to be_nil
      expect(dead.length).to eq(1)
    end

    # A job that is an operation, and asks for another one before its own point of no return.
    def whole(part)
      into = effects
      guard = once
      job_class do
        semel_once("whole", key: 0, payload: [], acting: :explicit)
        define_method(:perform) do |order|
          guard.operation("part", key: part, payload: { jid: 1 }) { 1 }
          op.acting { into << order }
          op.done(1)
        end
      end
    end

    it "raises the answer of an operation inside as what it is: an error of the job" do
      made = whole("#{key}-part")
      deliver(made, ["#{key}-0"])
      {
        { state: "'held'", outcome: "NULL", completed_at: "NULL" } => Semel::Held,
        { state: "'completed'", outcome: "'abandoned'", completed_at: "now()" } => Semel::Abandoned,
        { state: "'claimed'", outcome: "NULL", completed_at: "NULL", token: "'x'" } => Semel::InProgress,
        { fingerprint: "'#{"0" * 64}'" } => Semel::PayloadMismatch
      }.each do |changes, answer|
        stored.change("#{key}-part", **changes)
        expect { deliver(made, [key]) }.to raise_error(answer, &:nested?)
        expect(stored.record(key)).to include(state: "released")
        expect(stored.record(key)[:last_error]).to include(answer.name)
      end
      expect([scheduled, dead]).to eq([[], []])
      stored.change("#{key}-part", fingerprint: "NULL", state: "'completed'", outcome: "'acted'", completed_at: "now()")
      expect(deliver(made, [key])).to eq(1)
      expect(effects).to eq(["#{key}-0", key])
    end

    it "ends no job for an operation that it asked for by itself" do
      guard = once
      made = stub_const_for("Parts#{SecureRandom.hex(4)}", Class.new do
        include Sidekiq::Worker
        define_method(:perform) { |order| guard.operation("own", key: order) { 1 } }
      end)
      deliver(made, [key])
      stored.change(key, state: "'held'", outcome: "NULL", completed_at: "NULL")
      expect { deliver(made, [key]) }.to raise_error(Semel::Held) { |error| expect(error.nested?).to be(false) }
      stored.change(key, state: "'completed'", outcome: "'abandoned'", completed_at: "now()")
      expect { deliver(made, [key]) }.to raise_error(Semel::Abandoned)
      stored.change(key, state: "'claimed'", outcome: "NULL", completed_at: "NULL", token: "'x'")
      expect(deliver(made, [key])).to be_nil
      expect(scheduled.length).to eq(1)
    end

    it "raises what an operation inside an element is answered" do
      skip "Sidekiq #{Sidekiq::VERSION} has no iterable jobs" unless defined?(Sidekiq::IterableJob)

      guard = once
      mark = key
      guard.operation("part", key: "#{key}-part") { 1 }
      stored.change("#{key}-part", state: "'held'", outcome: "NULL", completed_at: "NULL")
      made = job_class do
        include Sidekiq::IterableJob
        semel_each "mail", key: ->(address) { [mark, address] }, payload: [], acting: :explicit
        define_method(:build_enumerator) { |cursor:| array_enumerator(%w[a], cursor: cursor) }
        define_method(:each_iteration) { |_| guard.operation("part", key: "#{mark}-part") { 1 } }
      end
      expect { deliver(made, []) }.to raise_error(Semel::Held)
      expect(log).not_to include("an element is left out")
    end

    it "takes a Row in its own transaction, and another guard where the class says so" do
      table = "rows_#{SecureRandom.hex(4)}"
      stored.ask("CREATE TABLE #{table} (customer text)")
      other = Semel.once(url, logger: logger, scope: "other")
      made = job_class do
        semel_once "row", key: 0, payload: [], effect: Semel::Row.new, once: other
        define_method(:perform) { |order| op.connection.exec_params("INSERT INTO #{table} VALUES ($1)", [order]) && nil }
      end
      2.times { deliver(made, [key]) }
      expect(stored.ask("SELECT count(*) FROM #{table}")[0][0]).to eq("1")
      expect(stored.ask("SELECT count(*) FROM semel.operations WHERE scope = 'other' AND label = '#{key}'")[0][0]).to eq("1")
      other.close
    end

    it "refuses to guard around an iterable job, and elements of one that is none" do
      expect do
        job_class do
          semel_each("x", key: 0, payload: [])
        end
      end.to raise_error(Semel::ConfigurationError, /no iterable job/)
      skip "Sidekiq #{Sidekiq::VERSION} has no iterable jobs" unless defined?(Sidekiq::IterableJob)
      expect { job_class { include(Sidekiq::IterableJob) && semel_once("x", key: 0, payload: []) } }
        .to raise_error(Semel::ConfigurationError, /many operations/)
    end

    it "guards each element of an iterable job" do
      skip "Sidekiq #{Sidekiq::VERSION} has no iterable jobs" unless defined?(Sidekiq::IterableJob)

      into = effects
      mark = key
      made = job_class do
        include Sidekiq::IterableJob
        semel_each "mail", key: ->(address, batch) { [mark, address, batch] }, payload: [], acting: :explicit
        define_method(:build_enumerator) { |_batch, cursor:| array_enumerator(%w[a b c], cursor: cursor) }
        define_method(:each_iteration) do |address, _batch|
          op.acting { into << address }
          raise IOError, "lost" if address == "b" && into.length == 2
        end
      end
      expect { deliver(made, [7]) }.to raise_error(IOError)
      expect(effects).to eq(%w[a b])
      deliver(made, [7]) # a is a repeat, b is held and left out, c is done
      expect(effects).to eq(%w[a b c])
      expect(log).to include("an element is left out")
      deliver(made, [7])
      expect([effects, scheduled, dead]).to eq([%w[a b c], [], []])
    end

    it "is pushed again where an element is in progress" do
      skip "Sidekiq #{Sidekiq::VERSION} has no iterable jobs" unless defined?(Sidekiq::IterableJob)

      mark = key
      made = job_class do
        include Sidekiq::IterableJob
        semel_each "mail", key: ->(address) { [mark, address] }, payload: []
        define_method(:build_enumerator) { |cursor:| array_enumerator(%w[a], cursor: cursor) }
        define_method(:each_iteration) { |_| nil }
      end
      once.operation("mail", key: [key, "a"]) do
        expect(deliver(made, [])).to be_nil
        1
      end
      expect(scheduled.length).to eq(1)
    end

    it "wants a guard" do
      expect { described_class.new("postgresql://x") }.to raise_error(Semel::ConfigurationError)
    end
  end
end
