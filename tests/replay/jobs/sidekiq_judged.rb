# frozen_string_literal: true

# The job under semel's guard in Ruby; with BROKEN its key is too wide: the customer instead of the order.

require 'sidekiq'
require 'semel/sidekiq'

Redis.silence_deprecations = true if defined?(Redis.silence_deprecations) # of redis 4.8, about Sidekiq 6.4

# The outside system: it writes down what it received.
class Provider
  def charge(order_id)
    File.write(ENV.fetch('RECEIVED'), "#{order_id}\n", mode: 'a')
  end
end

ONCE = Semel.once(ENV.fetch('TARGET'), logger: Sidekiq.logger)

Sidekiq.configure_server do |config|
  config.server_middleware { |chain| chain.add Semel::Sidekiq::Middleware, ONCE }
end

# The job.
class ChargeJob
  include Sidekiq::Worker
  include Semel::Sidekiq::Job
  key = ENV['BROKEN'] ? :customer : :order_id
  semel_once 'charge', key: key, payload: [:amount], acting: :explicit, effect: Semel::Hold.new, lease: 2

  def perform(order_id, customer, amount)
    op.acting { Provider.new.charge(order_id) }
    [order_id, customer, amount].length
  end
end
