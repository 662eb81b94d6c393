# frozen_string_literal: true

require "sidekiq"
require "semel"
require "semel/sidekiq/answers"
require "semel/sidekiq/declared"
require "semel/sidekiq/job"
require "semel/sidekiq/middleware"
