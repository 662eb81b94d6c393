# frozen_string_literal: true

module Semel
  VERSION = "0.1.0"
end
