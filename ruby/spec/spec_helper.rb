# frozen_string_literal: true

require "json"
require "tmpdir"
require "semel"
require "support/databases"
require "support/charges"
require "support/connections"

SHARED = File.expand_path("../../tests", __dir__)

def shared(name)
  JSON.parse(File.read(File.join(SHARED, name), encoding: "UTF-8"))
end

RSpec.configure do |config|
  config.disable_monkey_patching!
  config.expect_with(:rspec) { |expectations| expectations.syntax = :expect }
  config.mock_with(:nothing)
  config.order = :random
end
