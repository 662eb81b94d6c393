# frozen_string_literal: true

module Semel
  # The table of moves: from what the record says, read in one statement together with the database's clock, to the move to
  # write and the answer to give. It is the one of semel/core/operations.py, by the same names and in the same order of
  # checks; tests/moves.json holds what both must answer.
  module Operations
    # What ends a line, as Python counts.
    LINE_ENDS = /\r\n|[\n\r\v\f\u001c-\u001e\u0085\u2028\u2029]/

    # How often a claim may end without an answer before a person is asked.
    Limits = Struct.new(:max_unsure, :max_takeovers, keyword_init: true) do
      def initialize(max_unsure: 3, max_takeovers: 5)
        super
      end
    end

    # An operation as one statement read it. Times are seconds relative to the database's now at that read.
    Record = Struct.new(
      :state, :outcome, :revision, :claim, :mine, :same_payload, :lease_left, :acting, :unsure_for, :reference, :generation,
      :reference_age, :unsure, :takeovers, :looks, :extra_used, :committed_midway, :result, :result_dropped, :last_error,
      :message_kept, keyword_init: true
    ) do
      # Claimed, and past its lease.
      def stale?
        state == "claimed" && lease_left <= 0
      end

      # Seconds since the end of the last claim that may have acted; settle times count from it.
      def since_last_chance
        unsure_for.nil? ? -lease_left : unsure_for
      end
    end

    # The move to write, the answer to give, and the word for the record's history (nil: no event).
    Decision = Struct.new(:move, :reply, :event, :reason, :wait, :new_reference, :use_extra, keyword_init: true) do
      def initialize(move:, reply:, event: nil, reason: "", wait: nil, new_reference: false, use_extra: false)
        super
      end
    end

    module_function

    # The answer to a delivery. The order of the checks is binding: each entry of the table in its place.
    def begin(record, effect, longest_run:, limits:, payload_known: true)
      return Decision.new(move: :insert, reply: :act) if record.nil?

      in_time = !leaves_doubt?(record, :renew) || may_resend?(record, effect, longest_run: longest_run)
      if record.mine && record.state == "claimed" && in_time
        return Decision.new(move: :renew, reply: was_to_look?(record, effect) ? :look : :act)
      end

      mismatch = payload_known && !record.same_payload
      return claim_released(mismatch) if record.state == "released"
      return refused(:mismatch, "the payload is another one") if mismatch

      case record.state
      when "completed"
        Decision.new(move: :nothing, reply: record.outcome == "abandoned" ? :abandoned : :repeat)
      when "held"
        refused(:held, "it is held for a person")
      else
        next_claim(record, effect, longest_run, limits)
      end
    end

    # What a look-up's answer leads to; the attempt that looked holds the claim.
    def found(lookup, record, answer)
      case answer
      when DONE
        Decision.new(move: :complete_found, reply: :repeat, event: "looked", reason: "found done")
      when NOT_DONE
        Decision.new(move: :act, reply: :act, event: "looked", reason: "found not done", new_reference: true)
      else
        return hold("#{record.looks} look-ups could not tell") if record.looks >= lookup.looks

        Decision.new(
          move: :look_later, reply: :in_progress, event: "looked", reason: "the look-up could not tell",
          wait: lookup.wait_before(record.looks)
        )
      end
    end

    # What an exception leads to: before the point of no return, or where it certainly did not happen, the claim is released;
    # else nobody knows. An attempt that took over one +in_doubt+ knows of its own call at most.
    def failed(acting:, not_done:, in_doubt: false)
      (not_done || !acting) && !in_doubt ? :release : :uncertain
    end

    # Whether an attempt that begins by this move cannot tell what an attempt before it did.
    def leaves_doubt?(record, move)
      return record.acting if move == :take_over

      move == :renew && record.acting && record.takeovers.positive?
    end

    # Whether an attempt in doubt may still send the same reference: asked again right before the call, which may be late.
    def may_resend?(record, effect, longest_run:)
      !effect.is_a?(ProviderKey) || within_window?(record, effect, longest_run)
    end

    # Whether my claim, whose acknowledgement was lost, was one to look first: acting needs the look-up's NOT_DONE.
    def was_to_look?(record, effect)
      !effect.lookup.nil? && !record.unsure_for.nil?
    end

    def claim_released(mismatch)
      Decision.new(move: :claim, reply: :act, event: mismatch ? "payload_changed" : nil, new_reference: mismatch)
    end

    def next_claim(record, effect, longest_run, limits)
      return in_progress(record.lease_left, "another attempt holds its lease") unless record.stale?
      return hold("its handler committed midway") if record.committed_midway
      return hold("#{record.unsure} attempts ended without anybody knowing") if record.unsure >= limits.max_unsure
      return hold("it was taken over #{record.takeovers} times") if record.takeovers >= limits.max_takeovers
      return take_over("nothing can have happened") unless record.acting

      by_policy(record, effect, longest_run)
    end

    def by_policy(record, effect, longest_run)
      case effect
      when Row, Hold then hold(how_it_ended(record))
      when ProviderKey then by_window(record, effect, longest_run)
      when AcceptDuplicate
        return hold("#{effect.extra} further attempts are used up") if record.extra_used >= effect.extra

        take_over("a second effect is accepted", use_extra: true)
      when AcceptMiss then Decision.new(move: :miss, reply: :repeat, event: "missed", reason: "a miss is accepted")
      when Lookup then look(record, effect)
      end
    end

    # A claim past its point of no return: with an error, which its end noted, or with its worker.
    def how_it_ended(record)
      error = record.last_error.to_s.split(LINE_ENDS).first.to_s if record.unsure.positive? && !record.unsure_for.nil?
      return "its worker ended after the point of no return" if record.last_error.to_s.empty? || error.nil?

      "its handler raised after the point of no return: #{error[0, 200]}"
    end

    def by_window(record, effect, longest_run)
      return take_over("sent again with the same reference") if within_window?(record, effect, longest_run)

      effect.lookup.nil? ? hold("the provider's key may be forgotten") : look(record, effect.lookup)
    end

    def look(record, lookup)
      return hold("#{record.looks} look-ups gave no answer") if record.looks >= lookup.looks

      left = lookup.settle - record.since_last_chance
      return in_progress(left, "too early to ask") if left.positive?

      Decision.new(move: :take_over_to_look, reply: :look, event: "takeover", reason: "ask first")
    end

    # Surely: a run that starts now ends before the provider forgets.
    def within_window?(record, effect, longest_run)
      record.reference_age + longest_run < effect.valid_for
    end

    def take_over(reason, use_extra: false)
      Decision.new(move: :take_over, reply: :act, event: "takeover", reason: reason, use_extra: use_extra)
    end

    def hold(reason)
      Decision.new(move: :hold, reply: :held, event: "held", reason: reason)
    end

    def refused(reply, reason)
      Decision.new(move: :nothing, reply: reply, event: "refused", reason: reason)
    end

    def in_progress(seconds, reason)
      Decision.new(move: :nothing, reply: :in_progress, reason: reason, wait: [0.0, seconds].max)
    end
  end
end
