# frozen_string_literal: true

# The application that Sidekiq's worker runs in the adapters' contract: the job of tests/adapters/job.py, in Ruby.

require 'json'
require 'net/http'
require 'semel/sidekiq'

Redis.silence_deprecations = true if defined?(Redis.silence_deprecations) # of redis 4.8, about Sidekiq 6.4

ONCE = Semel.once(ENV.fetch('SEMEL_TEST_DATABASE'), logger: Sidekiq.logger)

# What the outside system is told and asked.
module Stage
  class Boom < StandardError; end

  module_function

  def post(path, **told)
    Net::HTTP.start('127.0.0.1', Integer(ENV.fetch('SEMEL_TEST_STAGE')), read_timeout: 90) do |http|
      JSON.parse(http.post("/#{path}", JSON.generate(told)).body)
    end
  end

  def reach(name, point, delivery = '')
    case post('reach', name: name, point: point, pid: Process.pid, delivery: delivery)['do']
    when 'raise' then raise Boom, "#{name} at #{point}"
    when 'not_done' then raise Semel::NotDone, "#{name} at #{point}"
    end
  end

  def charge(name, reference)
    post('charge', name: name, reference: reference)['id']
  end

  def find(reference)
    found = post('find', reference: reference)['id']
    found.nil? ? Semel::NOT_DONE : Semel::Found.new(found)
  end
end

# The job as it was: nothing keeps it from running twice.
class UnguardedJob
  include Sidekiq::Worker
  sidekiq_retry_in { 1 }

  def perform(name, _amount)
    Stage.reach(name, 'claimed', jid)
    made = Stage.charge(name, name)
    Stage.reach(name, 'effect', jid)
    made
  end
end

# The guarded job, under each effect.
class ChargeJob
  include Sidekiq::Worker
  include Semel::Sidekiq::Job
  sidekiq_retry_in { 1 }

  LEASE = Float(ENV.fetch('SEMEL_TEST_LEASE', '60'))

  def self.guard(effect)
    semel_once 'charge-order', key: :name, payload: [:amount], acting: :explicit, lease: LEASE, effect: effect
  end

  def perform(name, _amount)
    Stage.reach(name, 'claimed', jid)
    made = op.acting do
      Stage.reach(name, 'inside', jid)
      charged = Stage.charge(name, op.reference)
      Stage.reach(name, 'effect', jid)
      charged
    end
    op.done(made)
    Stage.reach(name, 'completed', jid)
    made
  end
end

class ChargeHoldJob < ChargeJob
  guard Semel::Hold.new
end

class ChargeLookupJob < ChargeJob
  guard(Semel::Lookup.new(settle: 0, backoff: '0.2 s') { |reference, *| Stage.find(reference) })
end

class ChargeDuplicateJob < ChargeJob
  guard Semel::AcceptDuplicate.new(extra: 1)
end

class ChargeMissJob < ChargeJob
  guard Semel::AcceptMiss.new
end

# An operation that asks for another one, before its own point of no return.
class WholeJob
  include Sidekiq::Worker
  include Semel::Sidekiq::Job
  sidekiq_retry_in { 1 }
  semel_once 'whole', key: :name, payload: [], acting: :explicit

  def perform(name, _amount)
    ONCE.operation('charge-order', key: "#{name}-part", payload: { amount: 100 }) { 1 }
    op.acting { Stage.charge(name, op.reference) }
    op.done(1)
  end
end

# An operation with a date of its own.
class DatedJob < ChargeJob
  semel_once 'charge-order', key: :name, payload: [], dated: ->(_, days) { Date.today - days }, acting: :explicit
end

# Its key is a number that has no one way to be written.
class FloatJob < ChargeJob
  semel_once 'charge-order', key: :amount, payload: [], acting: :explicit
end

# Extended by the beat, as long as it runs.
class ExtendedJob < ChargeJob
  semel_once 'charge-order', key: :name, payload: [:amount], acting: :explicit, lease: LEASE, longest_run: 120,
                             extend: true
end

# Tells Redis when a job is between the scheduled set and its queue, where nobody else can see it.
module Moving
  def enqueue_jobs(*)
    Sidekiq.redis { |redis| redis.hset('test:moving', Process.pid.to_s, '1') }
    super
  ensure
    Sidekiq.redis { |redis| redis.hdel('test:moving', Process.pid.to_s) }
  end
end

# Tests do not wait: the first look at the scheduled set comes at once, and retries come when they say.
module Prompt
  def initial_wait; end
end

# Without what Sidekiq adds by chance.
module Exact
  def rand(*)
    0
  end
end

Sidekiq.configure_server do |config|
  require 'sidekiq/scheduled'
  Sidekiq::Scheduled::Enq.prepend(Moving)
  Sidekiq::Scheduled::Poller.prepend(Prompt)
  Sidekiq::JobRetry.prepend(Exact)
  config.respond_to?(:[]=) ? config[:poll_interval_average] = 0.3 : Sidekiq.options[:poll_interval_average] = 0.3
  config.on(:startup) { Sidekiq.logger.info('the worker starts') }
  config.server_middleware { |chain| chain.add Semel::Sidekiq::Middleware, ONCE }
end
