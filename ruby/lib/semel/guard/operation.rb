# frozen_string_literal: true

module Semel
  # What a guarded block holds while it runs: the reference, the point of no return, the lease, the end. Of one attempt;
  # do not keep it.
  class Operation
    # The stable string to pass to the outside system as its idempotency key; the same over all attempts, until it is known
    # that nothing happened.
    attr_reader :reference
    # How often this operation was claimed, this time included.
    attr_reader :attempt
    # The one connection of a Row; nil for other effects.
    attr_reader :connection
    # What was completed with.
    attr_reader :result
    attr_reader :declaration, :request
    # Whether an earlier attempt may have acted: then no failure of this one says that nothing happened.
    attr_reader :in_doubt

    def initialize(declaration, request, begun, ending, connection = nil)
      @declaration = declaration
      @request = request
      @ending = ending
      @reference = begun.reference
      @attempt = begun.claim
      @connection = connection
      @passed = begun.acting
      @in_doubt = begun.in_doubt
      @acted = @completed = @lost = false
      @renewed = clock
    end

    # The point of no return, around the outside call: stored and fenced; renews the lease. Answers what the block does.
    #
    # Before it, any failure releases the claim: nothing happened. Raises ClaimLost where somebody else has the claim,
    # and then the call must not be made. One outside call is one operation: a second time is refused unless +again+.
    def acting(again: false)
      enter(again)
      yield if block_given?
    end

    # Completes now: an exception after this changes nothing. Answers the result. Raises ClaimLost.
    def done(result = nil)
      @ending.masked { @ending.finish(self, result) } unless @completed
      @result
    end

    # Renews the lease from now. Raises ClaimLost. (With modules it is Object#extend.)
    def extend(*modules)
      return super unless modules.empty?

      extend_lease("extend")
      nil
    end

    # Raises ClaimLost if somebody else holds the claim by now; renews the lease.
    def check
      extend_lease("check")
      nil
    end

    # Seconds until the lease ends, by this machine's stopwatch since it was last renewed; negative past it.
    def lease_left
      request.lease - (clock - @renewed)
    end

    # Whether the point of no return counts as passed.
    def passed?
      @passed
    end

    # Whether +acting+ was entered.
    def acted?
      @acted
    end

    def completed?
      @completed
    end

    def lost?
      @lost
    end

    # The claim is somebody else's.
    def lose
      @lost = true
    end

    # The lease was renewed by a statement that was sent at this time of the monotonic clock.
    def renewed(at)
      @renewed = [@renewed, at].max
    end

    # The end was stored.
    def complete(result)
      @completed = true
      @result = result
    end

    private

    def enter(again)
      if @acted && !again
        raise ConfigurationError.new(
          "#{declaration.job_type} entered op.acting a second time.",
          remedy: "One outside call is one operation; guard each, or say acting(again: true)."
        )
      end
      unless declaration.row?
        asked = clock
        @ending.masked { @ending.act(self) }
        renewed(asked)
      end
      @passed = @acted = true
    end

    def extend_lease(tried)
      return if declaration.row?

      asked = clock
      @ending.masked { @ending.extend_lease(self, tried) }
      renewed(asked)
    end

    def clock
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
