# frozen_string_literal: true

require "securerandom"

module Semel
  module Guard
    # One job type, as its author declares it: what its effect is, how long a claim holds. Checked when declared.
    #
    # +job_type+ is stable: it is part of the record. With +acting: :explicit+ the code marks its point of no return by
    # +op.acting+, and a failure before it releases the claim. +lease+ must cover +longest_run+, unless +extend: true+
    # keeps it. +not_done+ lists exceptions after which the effect certainly did not happen. An operation whose own date
    # is older than +keep+ (how long records are kept) and that has no record is answered TooOld.
    class Declaration
      KEPT = 90 * 86_400.0

      attr_reader :job_type, :effect, :acting, :lease, :longest_run, :extend_lease, :not_done, :limits, :label,
                  :store_result, :keep

      def initialize(job_type, effect: Hold.new, acting: :from_start, lease: 60, longest_run: nil, extend: false, not_done: [],
                     max_unsure: 3, max_takeovers: 5, label: true, store_result: true, keep: KEPT)
        @job_type = job_type
        @effect = effect
        @acting = acting.to_sym
        @lease = Durations.seconds(lease, "lease of #{job_type}")
        @longest_run = longest_run.nil? ? @lease : Durations.seconds(longest_run, "longest_run of #{job_type}")
        @extend_lease = extend
        @not_done = [NotDone, *not_done].freeze
        @limits = Operations::Limits.new(max_unsure: max_unsure, max_takeovers: max_takeovers)
        @label = label
        @store_result = store_result
        @keep = Durations.seconds(keep, "keep of #{job_type}")
        check
        freeze
      end

      def row?
        effect.is_a?(Row)
      end

      def explicit?
        acting == :explicit
      end

      private

      def check
        unless job_type.is_a?(String) && job_type.length.between?(1, 200) && !job_type.include?("\0")
          raise ConfigurationError, "An operation's job type is a non-empty string of at most 200 characters, without NUL."
        end

        unless effect.is_a?(Effect)
          raise ConfigurationError.new(
            "effect of #{job_type} is #{effect.inspect}, which is no effect.",
            remedy: "Give Row.new, ProviderKey.new(…), Lookup.new(…), Hold.new, AcceptDuplicate.new or AcceptMiss.new."
          )
        end
        unless %i[from_start explicit].include?(acting)
          raise ConfigurationError, "acting of #{job_type} is #{acting.inspect}: give :from_start or :explicit."
        end

        check_lease
      end

      def check_lease
        return if lease >= longest_run || extend_lease || row?

        raise ConfigurationError.new(
          "The lease of #{job_type} (#{Durations.describe(lease)}) is shorter than its longest run " \
          "(#{Durations.describe(longest_run)}), and nobody extends it: a live run would be taken for dead.",
          remedy: "Raise lease:, lower longest_run:, or set extend: true."
        )
      end
    end

    # One call of a job type: the key's value, the payload's fields (nil: no fingerprint), the scope, the operation's
    # own date, how the message is sent again, and what a look-up gets behind the reference.
    Call = Struct.new(:key, :payload, :scope, :dated, :message, :arguments, keyword_init: true) do
      def initialize(key:, payload: nil, scope: "", dated: nil, message: nil, arguments: [])
        super
      end
    end

    # Makes the requests of calls, with the secrets of one Once.
    class Requests
      def initialize(secret, older_secrets, labels:, keep_messages:)
        @secrets = [secret, *older_secrets].freeze
        @labels = labels && secret.nil?
        @keep_messages = keep_messages
        freeze
      end

      # The request of a new attempt, and one for each older secret: a record under any of them counts.
      def for(declaration, call)
        @secrets.map { |secret| request(declaration, call, secret) }
      end

      # Whether the operation is so old by its own date that its record may have been deleted. By this machine's clock, with
      # a day to spare: retention is counted in days.
      def beyond_records?(declaration, call)
        return false if call.dated.nil?

        date = case call.dated
               when DateTime then call.dated.new_offset(0).to_date
               when Time then call.dated.getutc.to_date
               when Date then call.dated
               else raise KeyRefused.new("The date of #{declaration.job_type} is #{call.dated.inspect}.",
                                         remedy: "Give dated: a Date or a Time.")
               end
        (Time.now.utc.to_date - date) * 86_400 >= declaration.keep - 86_400
      end

      private

      def request(declaration, call, secret)
        key = Keys.key(call.key, secret: secret, label: @labels && declaration.label)
        fingerprint = Keys.fingerprint(call.payload, secret: secret) unless call.payload.nil? || call.payload.empty?
        Store::Request.new(
          scope: call.scope.to_s, job_type: declaration.job_type, key: key.digest, token: SecureRandom.hex(16),
          reference: SecureRandom.uuid, effect: declaration.effect, lease: declaration.lease,
          longest_run: declaration.longest_run, limits: declaration.limits, fingerprint: fingerprint, label: key.label,
          key_version: key.version, acts_from_start: !declaration.explicit?, message: @keep_messages ? call.message : nil
        )
      end
    end
  end
end
