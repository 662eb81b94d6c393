# frozen_string_literal: true

require "json"
require "openssl"

module Semel
  # How the guard asks: requests, statements, the drivers' connections.
  module Store
    LONGEST_NAME = 255

    # One attempt at an operation: which one, with what, and under which policy. +token+ is new for each attempt and chosen
    # before the insert: a row with it is mine, whatever became of the answer.
    Request = Struct.new(
      :scope, :job_type, :key, :token, :reference, :effect, :lease, :longest_run, :limits, :fingerprint, :label, :key_version,
      :acts_from_start, :message, keyword_init: true
    ) do
      def initialize(scope:, job_type:, **fields)
        super(scope: Keys.text(scope, "The operation's scope"), job_type: Keys.text(job_type, "The job type"), **fields)
        %i[scope job_type].each do |name|
          value = self[name]
          if value.length > LONGEST_NAME
            raise KeyRefused.new("The operation's #{name} has more than #{LONGEST_NAME} characters.",
                                 remedy: "Shorten it.")
          end
          if value.include?("\0")
            raise KeyRefused.new("The operation's #{name} has a NUL character.",
                                 remedy: "Leave it out.")
          end
        end
        freeze
      end

      # What the operation is called in the log.
      def shown
        label || key[0, 12]
      end

      # The savepoint that marks the transaction of this attempt, where the database has no number for it.
      def mark
        "semel_#{OpenSSL::Digest::SHA256.hexdigest(token)[0, 24]}"
      end

      def identity
        { scope: scope, job_type: job_type, key: key }
      end

      def reading
        identity.merge(token: token, fingerprint: fingerprint)
      end

      def parameters
        reading.merge(
          reference: reference, lease: lease, label: label, key_version: key_version, acting: acts_from_start,
          effect: effect.name, message: message
        )
      end
    end

    # The guard's answer to a delivery. +unwritten+: a move to held that is still to be written, apart from the
    # transaction that asks; +in_doubt+: an earlier attempt may have acted, and this one acts in spite of it.
    Begun = Struct.new(:reply, :claim, :reference, :acting, :record, :reason, :wait, :unwritten, :in_doubt,
                       keyword_init: true) do
      def initialize(reply:, claim: 0, reference: "", acting: false, record: nil, reason: "", wait: nil, unwritten: false,
                     in_doubt: false)
        super
      end
    end

    module_function

    # A row of +read+ or +read_locked+, whose columns are the same in every dialect; pg gives all as text.
    def record_of(row)
      mine = truth(row[4])
      Operations::Record.new(
        state: row[0], outcome: row[1], revision: row[2].to_i, claim: row[3].to_i, mine: mine, same_payload: truth(row[5]),
        lease_left: row[6].to_f, acting: truth(row[7]), unsure_for: row[8]&.to_f, reference: row[9], generation: row[10].to_i,
        reference_age: row[11].to_f, unsure: row[12].to_i, takeovers: row[13].to_i, looks: row[14].to_i,
        extra_used: row[15].to_i, committed_midway: !row[16].nil? && !mine,
        result: row[17] && JSON.parse(row[17].dup.force_encoding(Encoding::UTF_8), max_nesting: false),
        result_dropped: truth(row[18]), last_error: row[19], message_kept: truth(row[20])
      )
    end

    def truth(value)
      [true, 1, "t", "1"].include?(value)
    end

    # A line of the operation's history, in the transaction of the move it tells of.
    def tell(session, request, event, claim, why: nil, detail: nil)
      told = detail && JSON.generate(detail)
      session.ask("event", request.identity.merge(event: event, claim: claim, who: nil, why: why, detail: told))
    end
  end
end
