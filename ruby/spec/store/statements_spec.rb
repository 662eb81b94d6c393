# frozen_string_literal: true

require "spec_helper"
require "tmpdir"

RSpec.describe Semel::Store::Statements do
  def made(dialect, text)
    Dir.mktmpdir do |folder|
      Dir.mkdir(File.join(folder, "guard"))
      Dir.mkdir(File.join(folder, "guard", dialect))
      File.write(File.join(folder, "guard", dialect, "act.sql"), text)
      return described_class.new(dialect, folder: folder)["act"]
    end
  end

  it "numbers parameters in the order in which they first come" do
    text = made("postgresql", "SELECT :b, :a, :b")
    expect([text.text, text.order]).to eq(["/* semel guard/act */ SELECT $1, $2, $1", %w[b a]])
  end

  it "repeats parameters for MySQL and names them for SQLite" do
    expect(made("mysql", "SELECT :b, :a, :b").then do |text|
             [text.text[22..], text.order]
           end).to eq(["SELECT ?, ?, ?", %w[b a b]])
    expect(made("sqlite", "SELECT :b, :a, :b").then do |text|
             [text.text[22..], text.order]
           end).to eq(["SELECT :b, :a, :b", %w[b a]])
  end

  it "leaves strings, names, comments and casts alone" do
    text = made("postgresql",
                "-- :no {schema}\nSELECT ':s {schema}', \":q\", $$:d$$, a::int /* :c */ FROM {schema}.t WHERE x = :x")
    expect(text.text[22..]).to eq("SELECT ':s {schema}', \":q\", $$:d$$, a::int  FROM \"semel\".t WHERE x = $1")
    expect(text.order).to eq(%w[x])
  end

  it "refuses names that would have to be escaped" do
    expect { described_class.new("postgresql", schema: 'a"; DROP') }.to raise_error(Semel::ConfigurationError)
    expect { described_class.new("sqlite")["mark", { mark: "x y" }] }.to raise_error(Semel::ConfigurationError)
  end

  %w[postgresql mysql sqlite].each do |dialect|
    it "has every statement of #{dialect} that its operations name" do
      statements = described_class.new(dialect)
      only = { "postgresql" => %w[drop_sign ends_with_wait find_sign find_tables mark restore_wait shorten_wait take_sign unmark],
               "mysql" => %w[find_tables read_free read_isolation],
               "sqlite" => %w[drop_sign ends_with_wait find_sign read_isolation restore_wait shorten_wait take_sign] }
      (described_class::NAMES - only.fetch(dialect)).each do |name|
        literals = %w[mark unmark].include?(name) ? { mark: "m" } : {}
        expect(statements[name, literals].text).not_to match(/:[a-z]|\{|--/) unless dialect == "sqlite"
      end
    end
  end
end
