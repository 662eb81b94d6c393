# frozen_string_literal: true

require "semel/version"
require "semel/errors"
require "semel/core/durations"
require "semel/core/effects"
require "semel/core/keys"
require "semel/core/operations"
require "semel/store"
require "semel/guard/shown"
require "semel/guard/declaration"
require "semel/guard/results"
require "semel/guard/answers"
require "semel/guard/same_database"
require "semel/guard/place"
require "semel/guard/ending"
require "semel/guard/operation"
require "semel/guard/beat"
require "semel/guard/delivery"
require "semel/once"

# The guard of semel for Ruby: one row per business operation, so that its effect happens once. The same table, the same
# statements and the same answers as the Python package's.
module Semel
  # The guard over one database; the options are those of Semel::Once.
  def self.once(target = nil, **options)
    Once.new(target, **options)
  end

  # An identifier that is a UUID in the other languages that share the operation.
  def self.uuid(text)
    Uuid.new(text)
  end
end
