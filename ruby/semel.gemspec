# frozen_string_literal: true

require_relative "lib/semel/version"

Gem::Specification.new do |spec|
  spec.name = "semel"
  spec.version = Semel::VERSION
  spec.summary = "One row per business operation, so that a job delivered twice acts once: for Sidekiq and any Ruby code."
  spec.description = "A guard over PostgreSQL, MariaDB or SQLite. It shares its table with the Python package semel."
  spec.authors = ["The authors of semel"]
  spec.license = "Apache-2.0"
  spec.required_ruby_version = ">= 3.1"
  # The statements under lib/semel/sql and lib/semel/faults.rb are copies, made by build.sh; in the repository they are read
  # where they are.
  spec.files = Dir.chdir(__dir__) { Dir["lib/**/*.{rb,sql}", "README.md", "LICENSE"] }
  spec.require_paths = ["lib"]
  spec.metadata = { "rubygems_mfa_required" => "true" }
  # bigdecimal is no longer a part of Ruby itself from 3.4 on. The database's driver (pg, mysql2 or sqlite3) is the
  # application's.
  spec.add_runtime_dependency "bigdecimal", ">= 3.1"
end
