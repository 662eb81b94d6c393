# frozen_string_literal: true

require "sidekiq/api"

module Semel
  module Sidekiq
    # What an answer of the guard becomes in Sidekiq, whose own retry lies outside of its middleware: an answer that is
    # no failure must never consume one. Each method returns, and the delivery then ends as if the job had run; or it
    # raises.
    class Answers
      MOST_WAIT = 60.0
      LEAST_WAIT = 0.05
      ASK_AGAIN = 1.0
      # Of an earlier failure or of the way to here: another delivery of the message has its own.
      TRANSIENT = %w[at enqueued_at error_message error_class error_backtrace failed_at retried_at retry_count].freeze

      def initialize(logger)
        @logger = logger
      end

      # The message that is kept with the record: JSON, from which the very same job can be pushed again. One whose last
      # argument is encrypted is decrypted by now, and is not kept.
      def self.message(job)
        return nil if job["encrypt"]

        message = JSON.generate({ "adapter" => "sidekiq" }.merge(job.except(*TRANSIENT)))
        message unless message.include?("\\u0000") # which PostgreSQL's JSON does not take
      end

      # Runs one delivery, and makes of what comes out of it what Sidekiq understands. +asked+ says whether the job itself is
      # the operation that was asked for: the answer of another one ends no job as if it had been done.
      def translate(job, asked:)
        yield
      rescue Error => e
        raise if e.nested?

        answer(job, e, asked)
      end

      private

      # Raises what is no answer.
      def answer(job, error, asked)
        case error
        when InProgress then push_again(job, error.retry_after, error) # and Busy
        when ClaimLost then push_again(job, ASK_AGAIN, error)
        when PayloadMismatch, TooOld, KeyRefused then bury(job, error)
        when Held, Abandoned
          raise error unless asked

          @logger.warn("#{job["class"]} #{job["jid"]}: #{error.message}")
          nil
        else raise error
        end
      end

      # The same job with its retry count, later: it asks the record again. Client middleware sees it, as it does the
      # first time; but one that stops it would lose it, and this message is all that there is.
      def push_again(job, seconds, answer)
        raise answer if runs_at_once?

        wait = [[seconds, LEAST_WAIT].max * rand(1.0..1.2), MOST_WAIT].min
        later = Time.now.to_f + wait
        ::Sidekiq::Client.push(job.merge("at" => later)) || past_middleware(job, later, answer)
        @logger.info("#{job["class"]} #{job["jid"]}: pushed again in #{wait.round(2)} s: #{answer.code}")
        nil
      end

      # In tests that run what is pushed where it is pushed, the job would run again and again.
      def runs_at_once?
        defined?(::Sidekiq::Testing) && ::Sidekiq::Testing.inline?
      end

      def past_middleware(job, later, answer)
        raise answer if job["encrypt"] # it would be stored readable; Sidekiq's retry has it as it came

        @logger.warn("#{job["class"]} #{job["jid"]}: client middleware stopped it: pushed past it")
        ::Sidekiq::ScheduledSet.new.schedule(later, job.except("at"))
      end

      # It never succeeds by being tried again: to the dead set, where a person sees why. Death handlers are told.
      def bury(job, error)
        raise error if job["encrypt"] # it would be stored readable; Sidekiq's retry has it as it came

        told = job.merge("error_class" => error.class.name, "error_message" => error.message,
                         "failed_at" => now_as_sidekiq_does)
        @logger.error("#{job["class"]} #{job["jid"]}: dies: #{error.message}")
        ::Sidekiq::DeadSet.new.kill(::Sidekiq.dump_json(told), ex: error)
        nil
      end

      # Seconds, and milliseconds from version 8 on.
      def now_as_sidekiq_does
        return Time.now.to_f if Gem::Version.new(::Sidekiq::VERSION) < Gem::Version.new("8")

        Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
      end
    end
  end
end
