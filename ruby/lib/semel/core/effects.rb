# frozen_string_literal: true

module Semel
  # What a look-up says about an effect: it happened, it certainly did not, or nobody can tell.
  DONE = :done
  NOT_DONE = :not_done
  UNKNOWN = :unknown

  # +DONE+, with the result that the operation would have had.
  Found = Struct.new(:result)

  # What a job does to the world, as its author declares it; the declaration decides what is done with a stale claim.
  class Effect
    attr_reader :name

    def initialize(name)
      @name = name
    end

    # The look-up that this effect may come to.
    def lookup
      nil
    end
  end

  # Rows in the database that also holds the record: claim, effect and completion are one transaction.
  class Row < Effect
    def initialize
      super("row")
      freeze
    end
  end

  # Nobody can tell: a stale claim waits for a person. The default.
  class Hold < Effect
    def initialize
      super("hold")
      freeze
    end
  end

  # A rare missing effect is acceptable: a stale claim is completed without acting, marked as missed.
  class AcceptMiss < Effect
    def initialize
      super("accept_miss")
      freeze
    end
  end

  # A rare second effect is acceptable: a stale claim acts again, at most +extra+ times, and is then held.
  class AcceptDuplicate < Effect
    attr_reader :extra

    def initialize(extra: 1)
      super("accept_duplicate")
      unless extra.is_a?(Integer) && extra >= 1
        raise ConfigurationError, "AcceptDuplicate(extra: …) is #{extra.inspect}: give a whole number from 1."
      end

      @extra = extra
      freeze
    end
  end

  # The outside system can be asked by reference: the block (or +find+) gets the reference, then the job's arguments, and
  # answers +DONE+, +NOT_DONE+, +UNKNOWN+ or a +Found+.
  #
  # +settle+: how long after the end of the last claim that may have acted a "not done" is believed; at least the outside
  # system's time-out and its lag. An answer of UNKNOWN, or an error, is asked again after +backoff+ (doubling), at most
  # +looks+ times, and then held.
  class Lookup < Effect
    attr_reader :find, :settle, :looks, :backoff

    def initialize(find = nil, settle:, looks: 5, backoff: 30, &block)
      super("lookup")
      @find = find || block
      raise ConfigurationError, "Lookup needs a block, or something to call." unless @find.respond_to?(:call)
      unless looks.is_a?(Integer) && looks >= 1
        raise ConfigurationError, "Lookup(looks: …) is #{looks.inspect}: give a whole number from 1."
      end

      @settle = Durations.seconds(settle, "Lookup(settle: …)")
      @backoff = Durations.seconds(backoff, "Lookup(backoff: …)")
      @looks = looks
      freeze
    end

    def lookup
      self
    end

    # Seconds until the look after number +look+ (from 1).
    def wait_before(look)
      [backoff * (2**[look - 1, 20].min), 3600.0].min
    end
  end

  # The outside system takes the reference as its idempotency key, and keeps it for +valid_for+. Within that time, less the
  # longest run, a stale claim acts again with the same reference; after it, +then+ (a +Hold+ or a +Lookup+) decides.
  class ProviderKey < Effect
    attr_reader :valid_for

    def initialize(valid_for:, then: Hold.new)
      super("provider_key")
      @afterwards = binding.local_variable_get(:then)
      unless @afterwards.is_a?(Hold) || @afterwards.is_a?(Lookup)
        raise ConfigurationError, "ProviderKey(then: …) is #{@afterwards.inspect}: give a Hold or a Lookup."
      end

      @valid_for = Durations.seconds(valid_for, "ProviderKey(valid_for: …)")
      freeze
    end

    def lookup
      @afterwards.lookup
    end
  end
end
