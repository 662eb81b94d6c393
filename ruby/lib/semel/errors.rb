# frozen_string_literal: true

module Semel
  # The root: rescue this to rescue everything that semel itself raises. Says what happened, what the database holds now,
  # and what to do; the codes are those of docs/errors.md.
  class Error < StandardError
    attr_reader :happened, :holds, :remedy
    # Whether it came out of a guarded block without being the answer of that block's own operation. Then it answers an
    # operation that the block asked for; to the one around it, and to Sidekiq, it is an error of the block like any other.
    attr_writer :nested

    class << self
      # The stable code; a class without one has its parent's.
      def code(value = nil)
        @code = value if value
        @code || superclass.code
      end
    end

    code "semel"

    def initialize(happened, holds: "", remedy: "")
      @happened = happened
      @holds = holds
      @remedy = remedy
      super(happened)
    end

    def nested?
      @nested || false
    end

    def code
      self.class.code
    end

    def message
      "#{[happened, holds, remedy].reject(&:empty?).join(" ")} [#{code}]"
    end

    def to_s
      message
    end
  end

  # A setting or a declaration that cannot be right; found before anything is stored.
  class ConfigurationError < Error
    code "configuration"
  end

  # The database could not be reached or ended the connection.
  class DatabaseUnreachable < Error
    code "database-unreachable"
  end

  # The database ended the caller's transaction (a serialisation failure or a deadlock): run it again whole.
  class RetryTransaction < Error
    code "retry-transaction"
  end

  # The tables are missing, or not as this version of semel needs them.
  class SchemaMismatch < Error
    code "schema-mismatch"
  end

  # A statement gave up on a lock that others hold; nothing was changed.
  class LockBusy < Error
    code "lock-busy"
  end

  # A value that makes no stable operation key or fingerprint. Nothing was claimed and nothing done.
  class KeyRefused < Error
    code "key-refused"
  end

  # The guard refuses to claim here: an open transaction, another database, a replica, a missing transaction.
  class UnsafeClaim < Error
    code "unsafe-claim"
  end

  # This attempt no longer holds its claim: its lease ran out and the operation was taken over, or a person decided.
  class ClaimLost < Error
    code "claim-lost"
  end

  # Raise it in a guarded block after the point of no return, where the effect certainly did not happen.
  class NotDone < Error
    code "not-done"
  end

  # An answer of the guard that is not "act" and not a repeat: the block was not called. The root of them.
  class GuardAnswer < Error
    code "guard-answer"
  end

  # Another attempt holds the claim, or it is too early to ask. Deliver again after +retry_after+ seconds.
  class InProgress < GuardAnswer
    code "in-progress"

    attr_reader :retry_after

    def initialize(happened, retry_after:, **parts)
      @retry_after = retry_after
      super(happened, **parts)
    end
  end

  # An open transaction holds the operation's key (a +Row+): nothing is known before it ends.
  class Busy < InProgress
    code "busy"
  end

  # The operation waits for a person: nobody can tell whether its effect happened. +message_kept+ says whether its record
  # keeps a message, so that a person's redo can send it again.
  class Held < GuardAnswer
    code "held"

    attr_reader :message_kept

    def initialize(happened, message_kept: false, **parts)
      @message_kept = message_kept
      super(happened, **parts)
    end
  end

  # The same key came with another payload: neither acted nor repeated. It never succeeds by being sent again.
  class PayloadMismatch < GuardAnswer
    code "payload-mismatch"
  end

  # A person decided that this operation is not to happen. Final.
  class Abandoned < GuardAnswer
    code "abandoned"
  end

  # The operation's own date is before what retention still remembers: it may have happened long ago.
  class TooOld < GuardAnswer
    code "too-old"
  end
end
