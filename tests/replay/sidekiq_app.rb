# frozen_string_literal: true

# A shop's jobs, as Sidekiq's worker runs them under replay. Nothing here knows of it.

require 'sidekiq'
require 'semel/sidekiq' if ENV['GUARD']

Redis.silence_deprecations = true if defined?(Redis.silence_deprecations) # of redis 4.8, about Sidekiq 6.4

# The outside system.
class Provider
  def charge(order, amount:)
    File.write(ENV.fetch('EFFECTS'), "#{order} #{amount}\n", mode: 'a')
    'charged'
  end

  def self.refund(order)
    new.charge(order, amount: 0)
  end

  def refuse(_order)
    raise ArgumentError, 'refused'
  end
  alias decline refuse
end

# A class that no "class … end" makes.
Late = Class.new do
  def charge(order)
    File.write(ENV.fetch('EFFECTS'), "#{order}\n", mode: 'a')
  end
end

# Nothing keeps it from acting twice.
class ChargeJob
  include Sidekiq::Worker
  sidekiq_options retry: 1
  sidekiq_retry_in { 3600 }

  def perform(order, amount)
    Provider.new.charge(order, amount: amount)
  end
end

# It is tried once, and then gone.
class OnceJob < ChargeJob
  sidekiq_options retry: false
end

# It is tried once, and then among the dead.
class DyingJob < ChargeJob
  sidekiq_options retry: 0
end

# It calls a method of the class itself.
class RefundJob
  include Sidekiq::Worker

  def perform(order, _amount)
    Provider.refund(order)
  end
end

# The provider says no.
class RefusedJob
  include Sidekiq::Worker
  sidekiq_retry_in { 3600 }

  def perform(order, _amount)
    Provider.new.refuse(order)
  end
end

# It calls the other class.
class LateJob
  include Sidekiq::Worker

  def perform(order, _amount)
    Late.new.charge(order)
  end
end

if ENV['GUARD']
  ONCE = Semel.once(ENV.fetch('GUARD'), logger: Sidekiq.logger)

  Sidekiq.configure_server do |config|
    config.server_middleware { |chain| chain.add Semel::Sidekiq::Middleware, ONCE }
  end

  # The same job under the guard.
  class GuardedJob
    include Sidekiq::Worker
    include Semel::Sidekiq::Job
    semel_once 'charge-order', key: :order, payload: [:amount]

    def perform(order, amount)
      Provider.new.charge(order, amount: amount)
    end
  end
end
