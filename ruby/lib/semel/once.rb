# frozen_string_literal: true

require "logger"

module Semel
  # Guards code by records in one database.
  #
  # +target+ is a URL, ActiveRecord::Base (or another connection class of ActiveRecord), or a connection of pg, mysql2 or
  # sqlite3, from which the guard takes where the database is; without one, the URL of SEMEL_DATABASE_URL. Outside effects
  # are claimed on a few connections of the guard's own, committed by themselves. +secret+ makes keys HMACs, for keys that
  # hold personal data: then no label is stored; +older_secrets+ still count for one retention after a rotation (nil: the
  # time without one).
  class Once
    VARIABLE = "SEMEL_DATABASE_URL"

    attr_reader :logger, :scope

    def initialize(target = nil, schema: "semel", scope: "", secret: nil, older_secrets: [], labels: true, keep_messages: true,
                   logger: nil, watch: nil)
      @logger = logger || Logger.new($stderr, progname: "semel.guard")
      @scope = scope
      @place = Guard::Place.new(target || target_told, schema, watch: watch)
      @beat = Guard::Beat.new(@place, @logger)
      @requests = Guard::Requests.new(secret, older_secrets, labels: labels, keep_messages: keep_messages)
    end

    # One delivery of one business operation: the block runs once per +key+, as the declared effect promises. Answers what the
    # block does, or what is stored where the operation was done before; raises InProgress, Busy, Held, PayloadMismatch,
    # Abandoned and TooOld without calling the block, ClaimLost where another attempt took over.
    #
    # +payload+: named fields that must not differ under one key. +dated+: the operation's own date. +on+: for a Row, the
    # connection whose transaction it belongs to. +arguments+: what a look-up gets behind the reference. The other options are
    # those of Semel::Guard::Declaration.
    def operation(job_type, key:, payload: nil, scope: nil, dated: nil, on: nil, arguments: [], **options, &block)
      call = Guard::Call.new(key: key, payload: payload, scope: scope || @scope, dated: dated, arguments: arguments)
      deliver(declare(job_type, **options), call, on: on, &block)
    end

    # A checked declaration, for those who deliver often.
    def declare(job_type, **options)
      Guard::Declaration.new(job_type, **options)
    end

    # One delivery of a declared operation; for adapters, which know how to send the message again.
    def deliver(declaration, call, on: nil, &block)
      raise ArgumentError, "the guard needs a block" unless block

      refuse_on(declaration) if on && !declaration.row?
      delivery = Guard::Delivery.new(
        declaration, call, @requests.for(declaration, call),
        place: @place, beat: @beat, logger: @logger, beyond: @requests.beyond_records?(declaration, call)
      )
      answer = declaration.row? ? delivery.run_row(on, &block) : delivery.run(&block)
      answer.is_a?(Guard::Answers::Repeat) ? answer.result : answer
    end

    # Runs everything on one connection, as savepoints of its transaction, while the block runs: for tests, whose rollback
    # then takes the records away. Every thread of the process is meant.
    def inside_transaction(connection)
      @place.inside = connection
      yield
    ensure
      @place.inside = nil
    end

    # Closes the guard's own connections.
    def close
      @place.close
    end

    private

    # What the environment says.
    def target_told
      told = ENV.fetch(VARIABLE, "").strip
      return told unless told.empty?

      raise ConfigurationError.new("Semel.once was given no database, and #{VARIABLE} is not set.",
                                   holds: "Nothing was claimed and nothing done.",
                                   remedy: "Set #{VARIABLE}, or say Semel.once(…).")
    end

    def refuse_on(declaration)
      raise UnsafeClaim.new(
        "#{declaration.job_type} has an effect outside the database: its claim may not sit in a transaction that can still " \
        "roll back.",
        holds: "Nothing was claimed and nothing done.",
        remedy: "Call it without on:, after your commit; or declare effect: Semel::Row.new."
      )
    end
  end
end
