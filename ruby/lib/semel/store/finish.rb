# frozen_string_literal: true

module Semel
  module Store
    # How an attempt's own writes end: fenced by its token. One statement where all is well; where it changes nothing, a
    # second look, in a transaction, says what became of the claim and keeps what the attempt reported as evidence.
    module Finish
      module_function

      # The point of no return: notes that the effect may begin now, and renews the lease. False: nothing changed.
      def act(session, request)
        session.ask("act", request.parameters.merge(new_reference: false)).any?
      end

      # Renews the lease. False: nothing changed.
      def extend_lease(session, request)
        session.ask("extend", request.parameters).any?
      end

      # The effect happened, within the lease. False: nothing changed; then +complete_late+.
      def complete(session, request, result:, result_dropped:)
        session.ask("complete", completion(request, result, result_dropped)).any?
      end

      # +complete+ of a Row, in the caller's transaction. False: it is not the transaction that claimed.
      def complete_row(session, request, result:, result_dropped:)
        unless session.dialect == "postgresql"
          begin
            session.ask("unmark", {}, mark: request.mark)
          rescue Error
            raise
          rescue StandardError # no such savepoint: SQLite has no code of its own for that
            return false
          end
        end
        session.ask("complete_row", completion(request, result, result_dropped)).any?
      end

      # Completes past the lease or out of held, where nobody took over; repeated, it is a success; else evidence is kept.
      # +:written+, or +:lost+.
      def complete_late(session, request, result:, result_dropped:)
        looking(session, request) do |record|
          next :written if record.mine && record.state == "completed"

          if record.mine && %w[claimed held].include?(record.state) &&
             session.ask("complete_late", completion(request, result, result_dropped)).any?
            Store.tell(session, request, record.state == "held" ? "late_finish" : "late", record.claim)
            next :written
          end
          keep_evidence(session, request, record, outcome: "acted", result: result && result[0, 1000])
        end
      end

      # What became of the claim of an attempt whose step changed nothing; the try is kept as evidence.
      def lost(session, request, tried:)
        looking(session, request) do |record|
          keep_evidence(session, request, record, outcome: tried)
        end
      end

      # Nothing happened: let the next delivery act. On a held operation it is evidence for the person.
      def release(session, request, error:)
        fenced(session, "release", request, error, "released", "not_done")
      end

      # The attempt ended and cannot tell: leave the claim to its policy, from now on.
      def uncertain(session, request, error:)
        fenced(session, "uncertain", request, error, "uncertain", "unknown")
      end

      def fenced(session, name, request, error, told, outcome)
        looking(session, request) do |record|
          if session.ask(name, request.parameters.merge(error: error)).any?
            Store.tell(session, request, told, record.claim, why: error)
            next :written
          end
          keep_evidence(session, request, record, outcome: outcome, error: error)
        end
      end

      # What a lost attempt reports. Where a person may be about to decide, the record is another one than was shown.
      def keep_evidence(session, request, record, **detail)
        Store.tell(session, request, "evidence", record.claim, detail: detail)
        session.ask("touch", request.identity) if record.state == "held" || record.stale?
        :lost
      end

      def looking(session, request)
        session.transaction do
          row = session.ask("read_locked", request.reading).first
          row.nil? ? :lost : yield(Store.record_of(row))
        end
      end

      def completion(request, result, result_dropped)
        request.parameters.merge(outcome: "acted", result: result, result_dropped: result_dropped)
      end
    end
  end
end
