# frozen_string_literal: true

require "spec_helper"

Databases::URLS.each_key do |dialect|
  RSpec.describe Semel::Once, "on #{dialect}" do
    include_context "with a database", dialect
    include_context "with charges"

    describe "a stale claim past the point of no return" do
      def die(**options)
        expect { charge(fail_at: :effect, **options) }.to raise_error("boom")
        stored.change(key, unsure: 0)
      end

      it "acts again with the same reference within the provider's window" do
        effect = Semel::ProviderKey.new(valid_for: "1 h")
        die(effect: effect)
        expect(charge(effect: effect, longest_run: 10)).to eq("charge-2")
        expect(effects.uniq.length).to eq(1)
      end

      it "is held past the provider's window, or asked for" do
        effect = Semel::ProviderKey.new(valid_for: "1 h")
        die(effect: effect)
        stored.change(key, reference_at: ->(words) { words[:ago].call(3600) })
        asking = Semel::ProviderKey.new(valid_for: "1 h", then: Semel::Lookup.new(settle: 0) { Semel::DONE })
        expect(charge(effect: asking)).to be_nil
        expect(state).to eq("completed found")
        expect(effects.length).to eq(1)
      end

      it "accepts so many duplicates and no more" do
        effect = Semel::AcceptDuplicate.new(extra: 1)
        die(effect: effect)
        expect { charge(effect: effect, fail_at: :effect) }.to raise_error("boom")
        expect { charge(effect: effect) }.to raise_error(Semel::Held)
        expect(effects.length).to eq(2)
      end

      it "accepts a miss" do
        die(effect: Semel::AcceptMiss.new)
        expect(charge(effect: Semel::AcceptMiss.new)).to be_nil
        expect(state).to eq("completed missed")
        expect(log).to include("repeat: completed (missed)")
      end

      it "is asked for: done, with its result" do
        asked = []
        effect = Semel::Lookup.new(settle: 0) do |reference, *arguments|
          asked << [reference, arguments] and Semel::Found.new("ch")
        end
        die(effect: effect)
        expect(charge(effect: effect, arguments: [1, "x"])).to eq("ch")
        expect(asked).to eq([[effects[0], [1, "x"]]])
        expect(state).to eq("completed found")
        expect(effects.length).to eq(1)
      end

      it "is asked for: not done, then acted on under a new reference" do
        effect = Semel::Lookup.new(settle: 0) { Semel::NOT_DONE }
        die(effect: effect)
        expect(charge(effect: effect)).to eq("charge-2")
        expect(effects.uniq.length).to eq(2)
        expect(stored.record(key)).to include(generation: "2", outcome: "acted")
      end

      it "is asked for again where nobody can tell, and at last held" do
        effect = Semel::Lookup.new(settle: 0, looks: 2, backoff: 0.001) { raise IOError, "no route" }
        die(effect: effect)
        expect { charge(effect: effect) }.to raise_error(Semel::InProgress)
        sleep(0.01)
        expect { charge(effect: effect) }.to raise_error(Semel::Held)
        expect(stored.record(key)).to include(looks: "2", last_error: "IOError: no route")
        expect(effects.length).to eq(1)
      end

      it "is waited for as long as it settles" do
        effect = Semel::Lookup.new(settle: 30) { raise "not yet" }
        die(effect: effect)
        expect { charge(effect: effect) }.to raise_error(Semel::InProgress) { |error| expect(error.retry_after).to be > 20 }
        stored.change(key, unsure_until: ->(words) { words[:ago].call(31) })
        found = Semel::Lookup.new(settle: 30) { Semel::DONE }
        expect(charge(effect: found)).to be_nil
      end

      it "is acted on whatever the policy is, where nobody had begun to act" do
        once.operation("charge-order", key: key, acting: :explicit, payload: { amount: 100 }) do |op|
          stored.age(key)
          expect(charge).to eq("charge-1")
          expect { op.acting }.to raise_error(Semel::ClaimLost)
          expect { op.done(1) }.to raise_error(Semel::ClaimLost)
          raise Semel::NotDone, "lost"
        end
      rescue Semel::NotDone
        expect(effects.length).to eq(1)
        expect(stored.events(key)).to eq(%w[takeover evidence evidence])
      end
    end
  end
end
