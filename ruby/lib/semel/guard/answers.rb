# frozen_string_literal: true

require "logger"

module Semel
  module Guard
    # What deliveries are told, and the log line of every answer that is not "act".
    class Answers
      LEVELS = { info: Logger::INFO, warn: Logger::WARN }.freeze
      BUSY_WAIT = 1.0

      # A further delivery of a completed operation: answered with what is stored, without acting.
      Repeat = Struct.new(:result, :outcome)

      def initialize(logger)
        @logger = logger
      end

      def log(level, request, answered, reason)
        @logger.add(LEVELS.fetch(level)) do
          "operation #{request.job_type} #{request.shown}: #{answered}#{reason.empty? ? "" : ": #{reason}"}"
        end
      end

      # A repeat, or the error for every other answer; each is logged with its reason.
      def tell(request, begun)
        return repeat(request, begun) if %i[repeat abandoned].include?(begun.reply)

        log(:warn, request, begun.reply.to_s, begun.reason)
        operation = "#{request.job_type} #{request.shown}"
        case begun.reply
        when :mismatch
          raise PayloadMismatch.new(
            "#{operation} came before with another payload: #{begun.reason}.",
            holds: "The first one's record is unchanged.",
            remedy: "Give different operations different keys, or name the fields that count by payload:."
          )
        when :held
          why = begun.reason.empty? ? "nobody can tell whether its effect happened" : begun.reason
          raise Held.new(
            "#{operation} is held: #{why}.",
            message_kept: begun.record&.message_kept || false,
            remedy: "A person decides: semel held list"
          )
        else
          raise InProgress.new(
            "#{operation} is claimed: #{begun.reason}.",
            retry_after: begun.wait || BUSY_WAIT,
            remedy: "Deliver it again later."
          )
        end
      end

      # The answer where an open transaction has the key, or SQLite's file.
      def busy(request)
        log(:warn, request, "busy", "an open transaction has its key")
        Busy.new(
          "#{request.job_type} #{request.shown} is in an open transaction.",
          retry_after: BUSY_WAIT,
          remedy: "Deliver it again later."
        )
      end

      def too_old(request)
        reason = "its own date is older than records are kept, and it has none"
        log(:warn, request, "too_old", reason)
        TooOld.new("#{request.job_type} #{request.shown} may have been done long ago: #{reason}.",
                   holds: "Nothing was claimed and nothing done.",
                   remedy: "Find out, and do it by hand; or keep records longer (keep:).")
      end

      def claim_lost(request, reason)
        log(:warn, request, "claim_lost", reason)
        ClaimLost.new("This attempt at #{request.job_type} no longer holds its claim: #{reason}.",
                      remedy: "Stop; the record says what became of the operation.")
      end

      private

      def repeat(request, begun)
        record = begun.record
        outcome = record.state == "completed" ? record.outcome : "missed"
        log(:info, request, begun.reply.to_s, "completed (#{outcome})")
        return Repeat.new(record.result, outcome) unless begun.reply == :abandoned

        raise Abandoned.new("#{request.job_type} #{request.shown} was abandoned by a person.",
                            holds: "It is completed, without an effect.")
      end
    end
  end
end
