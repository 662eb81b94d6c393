# frozen_string_literal: true

require "spec_helper"

RSpec.describe Semel::Durations do
  { 90 => 90.0, 0.5 => 0.5, "90 s" => 90.0, "10 min" => 600.0, "1 h 30 min" => 5400.0, "24 h" => 86_400.0, "250 ms" => 0.25,
    "1.5" => 1.5, "2 days" => 172_800.0 }.each do |given, seconds|
    it "reads #{given.inspect}" do
      expect(described_class.seconds(given, "lease")).to eq(seconds)
    end
  end

  [-1, Float::NAN, Float::INFINITY, nil, true, "", "soon", "5 parsecs", "1 min x", 1e12].each do |given|
    it "refuses #{given.inspect}" do
      expect { described_class.seconds(given, "lease") }.to raise_error(Semel::ConfigurationError, /lease/)
    end
  end

  it "shows what it reads" do
    [0.25, 1, 90, 3600, 5400.5, 86_400].each do |seconds|
      expect(described_class.seconds(described_class.describe(seconds), "it")).to eq(seconds)
    end
  end
end
