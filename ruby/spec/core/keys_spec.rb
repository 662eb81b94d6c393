# frozen_string_literal: true

require "spec_helper"

# tests/keys.json: keys and fingerprints as the Python package computes them.
RSpec.describe Semel::Keys do
  vectors = shared("keys.json")
  readers = {
    "str" => ->(value) { value },
    "int" => ->(value) { Integer(value) },
    "bool" => ->(value) { value },
    "uuid" => ->(value) { Semel.uuid(value) },
    "date" => ->(value) { Date.iso8601(value) },
    "datetime" => ->(value) { Time.iso8601(value) },
    "decimal" => ->(value) { BigDecimal(value) },
    "enum" => ->(value) { value["value"].is_a?(String) ? value["value"].to_sym : value["value"] },
    "float" => ->(value) { Float(value) }
  }.freeze
  read = lambda do |value|
    case value
    when Hash
      value.keys.sort == %w[type value] ? readers.fetch(value["type"]).call(value["value"]) : value.transform_values(&read)
    when Array then value.map(&read)
    else value
    end
  end
  secret = Semel::Secret.new(vectors.dig("secret", "utf8"), version: vectors.dig("secret", "version"))

  it "computes every key alike" do
    wrong = vectors["keys"].reject do |vector|
      parts = read.call(vector["parts"])
      plain = described_class.key(parts)
      keyed = described_class.key(parts, secret: secret)
      vector.values_at("text", "sha256", "hmac") == [plain.text, plain.digest, keyed.digest] && keyed.version == 7 &&
        keyed.label.nil?
    end
    expect(wrong).to eq([])
    expect(vectors["keys"].length).to be > 50
  end

  it "computes every fingerprint alike" do
    wrong = vectors["fingerprints"].reject do |vector|
      payload = read.call(vector["payload"])
      vector.values_at("sha256",
                       "hmac") == [described_class.fingerprint(payload), described_class.fingerprint(payload, secret: secret)]
    end
    expect(wrong).to eq([])
  end

  [
    nil, "", :"", [], [nil], [1, ""], 1.5, Float::NAN, BigDecimal("NaN"), BigDecimal("Infinity"), BigDecimal("1e1001"),
    BigDecimal("1e-1001"), 10**1000, Object.new, { a: 1 }, [[1]], "\xff", "caf\xe9".b, Rational(1, 2), (1..2)
  ].each do |value|
    it "refuses #{value.inspect[0, 40]}" do
      expect { described_class.key(value) }.to raise_error(Semel::KeyRefused)
    end
  end

  it "refuses years that other languages have not" do
    expect { described_class.key(Time.utc(10_000)) }.to raise_error(Semel::KeyRefused)
    expect { described_class.key(Date.new(-1, 1, 1)) }.to raise_error(Semel::KeyRefused)
  end

  it "takes text in another encoding for the same text" do
    expect(described_class.key("caf\u00e9".encode("ISO-8859-1")).text).to eq(described_class.key("caf\u00e9").text)
  end

  it "takes a DateTime for an instant and a Time to the microsecond" do
    expect(described_class.key(DateTime.new(2024, 3, 10, 13, 0, 0, "+1")).text)
      .to eq(described_class.key(Time.utc(2024, 3, 10, 12)).text)
    expect(described_class.key(Time.at(0, 1999, :nsec)).text).to end_with("00.000001Z,")
  end

  it "keeps symbols and strings, numbers and text apart as Python does" do
    expect(described_class.key(:eur).text).to eq(described_class.key("eur").text)
    expect(described_class.key(1).text).not_to eq(described_class.key("1").text)
  end

  it "writes floats of a payload as Python does" do
    shown = { 1.5 => "1.5", 1e16 => "1e+16", 1e-5 => "1e-05", 123_456_789_012_345.6 => "123456789012345.6", 1e100 => "1e+100",
              -0.0 => "-0.0", 0.0001 => "0.0001", 1.5e300 => "1.5e+300" }
    expect(shown.keys.map { |value| described_class.float(value) }).to eq(shown.values)
  end

  it "shows a label, cut and without NUL" do
    expect(described_class.key(["a\0b", 2]).label).to eq("a\ufffdb/2")
    expect(described_class.key("x" * 300).label.length).to eq(200)
    expect(described_class.key("x", label: false).label).to be_nil
  end

  it "refuses secrets that are short, and does not show them" do
    expect { Semel::Secret.new("short") }.to raise_error(Semel::KeyRefused)
    expect(Semel::Secret.new("x" * 16).inspect).not_to include("xxx")
  end

  it "refuses what is no UUID" do
    expect { Semel.uuid("f81d4fae") }.to raise_error(Semel::KeyRefused)
    expect(Semel.uuid("{F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6}").to_s).to eq("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
  end

  it "refuses a payload that has no one way to be written" do
    expect { described_class.fingerprint({ amount: Object.new }) }.to raise_error(Semel::KeyRefused)
    expect { described_class.fingerprint({ Object.new => 1 }) }.to raise_error(Semel::KeyRefused)
  end
end
