# frozen_string_literal: true

require "spec_helper"

# tests/moves.json: every state, event and policy, as the Python package decides them.
RSpec.describe Semel::Operations do
  vectors = shared("moves.json")
  let(:run) { vectors.fetch("longest_run") }
  let(:lookup) { Semel::Lookup.new(settle: 30, looks: 3, backoff: 10) { Semel::UNKNOWN } }
  let(:effects) do
    {
      "row" => Semel::Row.new,
      "hold" => Semel::Hold.new,
      "lookup" => lookup,
      "provider_key" => Semel::ProviderKey.new(valid_for: 3600),
      "provider_key then lookup" => Semel::ProviderKey.new(valid_for: 3600, then: lookup),
      "accept_duplicate" => Semel::AcceptDuplicate.new,
      "accept_duplicate 2" => Semel::AcceptDuplicate.new(extra: 2),
      "accept_miss" => Semel::AcceptMiss.new
    }
  end
  let(:plain) { vectors.fetch("record") }

  def record(given)
    members = Semel::Operations::Record.members.map(&:to_s)
    fields = plain.merge(given["standing"] || {}, given.slice(*members))
    Semel::Operations::Record.new(**fields.transform_keys(&:to_sym))
  end

  def told(decision)
    decision.to_h.transform_keys(&:to_s).merge("move" => decision.move.to_s, "reply" => decision.reply.to_s)
  end

  # Fails with the first cases that are decided otherwise.
  def expect_same(table)
    axes = table.fetch("axes")
    first, *rest = axes.values
    cases = first.product(*rest).map { |values| axes.keys.zip(values).to_h }
    expect(cases.length).to eq(table.fetch("answers").length)
    wrong = cases.zip(table["answers"]).filter_map do |given, index|
      found = yield given
      [given, found, table["decisions"][index]] unless found == table["decisions"][index]
    end
    expect(wrong.first(3)).to eq([])
  end

  it "claims what has no record" do
    decision = described_class.begin(nil, effects["hold"], longest_run: run, limits: Semel::Operations::Limits.new)
    expect(told(decision)).to eq(vectors["no_record"])
  end

  vectors.fetch("begin").each do |name, table|
    it "decides on #{name}" do
      expect_same(table) do |given|
        limits = Semel::Operations::Limits.new(**(given["limits"] || {}).transform_keys(&:to_sym))
        known = given.fetch("payload_known", true)
        effect = effects.fetch(given["effect"])
        told(described_class.begin(record(given), effect, longest_run: run, limits: limits, payload_known: known))
      end
    end
  end

  it "decides on what a look-up found" do
    expect_same(vectors["found"]) { |given| told(described_class.found(lookup, record(given), given["answer"].to_sym)) }
  end

  it "decides on exceptions" do
    expect_same(vectors["failed"]) do |given|
      described_class.failed(**given.transform_keys(&:to_sym)).to_s
    end
  end

  it "knows who is in doubt" do
    expect_same(vectors["leaves_doubt"]) { |given| described_class.leaves_doubt?(record(given), given["move"].to_sym) }
  end

  it "knows what may be sent again" do
    expect_same(vectors["may_resend"]) do |given|
      described_class.may_resend?(record(given), effects.fetch(given["effect"]), longest_run: run)
    end
  end
end
