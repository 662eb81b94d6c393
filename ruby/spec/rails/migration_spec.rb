# frozen_string_literal: true

require "spec_helper"
require "active_record"

# The migration that "semel migration rails --only guard" writes, run by Rails' own migrator: SEMEL_SPEC_MIGRATIONS is its
# folder, SEMEL_SPEC_EMPTY the URL of a database with nothing in it.
RSpec.describe "the exported migration", if: ENV.key?("SEMEL_SPEC_EMPTY") do
  let(:url) { ENV.fetch("SEMEL_SPEC_EMPTY") }
  let(:lines) { StringIO.new }

  before do
    ActiveRecord::Base.establish_connection(Connections.configuration(url))
    ActiveRecord::Migration.verbose = false
    ActiveRecord::Migrator.migrations_paths = [ENV.fetch("SEMEL_SPEC_MIGRATIONS")]
  end

  def migrations
    pool = ActiveRecord::Base.connection_pool
    pool.respond_to?(:migration_context) ? pool.migration_context : ActiveRecord::Base.connection.migration_context
  end

  it "goes up, again and down" do
    migrations.migrate
    migrations.migrate
    expect(migrations.needs_migration?).to be(false)
    once = Semel.once(ActiveRecord::Base, logger: Logger.new(lines))
    expect(Array.new(2) { |number| once.operation("charge", key: 7) { number } }).to eq([0, 0])
    migrations.rollback
    expect { once.operation("charge", key: 7) { 2 } }.to raise_error(Semel::SchemaMismatch)
    migrations.migrate
    expect(once.operation("charge", key: 7) { 3 }).to eq(3)
    once.close
  end
end
