# frozen_string_literal: true

module Semel
  module Store
    # The answer to a delivery of an operation, decided by Semel::Operations and written fenced by what was read.
    #
    # For the first delivery it is a plain insert, committed by itself; for every other one a short transaction that locks the
    # record, decides, and writes the move with its event. A +Row+ claims in the caller's own transaction instead. Where a
    # method answers +:again+, the record changed in between: decide anew.
    module Begin
      MOVES = { renew: "renew", claim: "claim", take_over: "take_over", take_over_to_look: "take_over_to_look", hold: "hold",
                miss: "miss" }.freeze
      LOOKED = { complete_found: "complete_late", act: "act", look_later: "look_later", hold: "hold_mine" }.freeze
      # What the adapters call a message's id in what a record keeps.
      IDS = %w[id jid job_id].freeze
      # Characters of a fingerprint: enough to find it in the record.
      SHOWN = 16
      LOOSE = ["read committed", "read uncommitted"].freeze

      module_function

      # Claims an operation that has no record; nil where there is one. A single committed statement. MySQL's count of
      # inserted rows does not tell a new row from an old (CLIENT.FOUND_ROWS), so its token is read afterwards.
      def first(session, request)
        rows = session.ask("insert", request.parameters)
        if rows.any? && session.dialect == "mysql"
          rows = session.ask("read", request.reading).select { |row| new?(Store.record_of(row), request) }
        end
        first_claim(request) if rows.any?
      end

      # Answers a delivery of an operation that has a record; locks the record for one short transaction.
      def known(session, request)
        session.transaction do
          rows = session.ask("read_locked", request.reading)
          next :again if rows.empty?

          write(session, request, *decision(request, rows), in_transaction: false)
        end
      end

      # Claims inside the caller's transaction, waiting for nobody; nil means busy: a rival's transaction has the key.
      # +:again+, on PostgreSQL, asks for a savepoint: the isolation is stricter than READ COMMITTED. MySQL and SQLite
      # mark the transaction with a savepoint, by which +Finish.complete_row+ knows it again; PostgreSQL knows it by its
      # number.
      def row(session, request, in_savepoint: false)
        case session.dialect
        when "postgresql"
          return row_postgresql(session, request, in_savepoint) unless in_savepoint

          session.transaction { row_postgresql(session, request, true) }
        when "mysql" then marked(session, request) { row_mysql(session, request) }
        else marked(session, request) { row_sqlite(session, request) }
        end
      end

      # Writes what a look-up answered. Only after this step, fenced, may the attempt that looked act.
      def looked(session, request, answer, result: nil, error: nil)
        session.transaction do
          row = session.ask("read_locked", request.reading).first
          record = row && Store.record_of(row)
          next :again if record.nil? || !record.mine
          # this very step, whose acknowledgement was lost
          next Begun.new(reply: :repeat, record: record) if record.state == "completed"
          next Begun.new(reply: :held, record: record) if record.state == "held"

          write_look(session, request, record, Operations.found(request.effect.lookup, record, answer), result, error)
        end
      end

      # The record as it stands.
      def read(session, request)
        row = session.ask("read", request.reading).first
        row && Store.record_of(row)
      end

      def write_look(session, request, record, decision, result, error)
        parameters = request.parameters.merge(
          new_reference: decision.new_reference, outcome: "found", result: result, result_dropped: false,
          wait: decision.wait || 0.0, reason: decision.reason, error: error
        )
        return :again if session.ask(LOOKED.fetch(decision.move), parameters).empty?

        Store.tell(session, request, decision.event || "looked", record.claim, why: decision.reason)
        answer(request, decision, read(session, request), acting: true)
      end

      def marked(session, request)
        begun = yield
        session.ask("mark", {}, mark: request.mark) if begun.is_a?(Begun) && begun.reply == :act
        begun
      end

      def row_postgresql(session, request, in_savepoint)
        return first_claim(request) if session.ask("insert_row", request.parameters.merge(in_savepoint: in_savepoint)).any?

        rows = session.ask("read", request.reading)
        if rows.any?
          record, decision = decision(request, rows)
          return write(session, request, record, decision, in_transaction: true) if decision.move == :nothing
          # in this transaction it would be rolled back with the caller's refusal
          return Begun.new(reply: :held, record: record, reason: decision.reason, unwritten: true) if decision.move == :hold
        end
        return :again if !in_savepoint && !LOOSE.include?(session.ask("read_isolation")[0][0])

        rows.any? ? move_free(session, request) : nil
      end

      def row_sqlite(session, request)
        begin
          rows = session.ask("insert_row", request.parameters)
        rescue LockBusy
          return nil
        end
        rows.any? ? first_claim(request) : move_free(session, request)
      end

      def row_mysql(session, request)
        rows = with_short_wait(session) do
          session.ask("insert_row", request.parameters)
          session.ask("read_locked", request.reading)
        end
        return rows if rows.nil?
        return :again if rows.empty?
        return first_claim(request) if new?(Store.record_of(rows[0]), request)

        write(session, request, *decision(request, rows), in_transaction: true)
      end

      # Waits a second for a rival at most, and gives the session its own time back; nil: the rival has the key.
      def with_short_wait(session)
        session.ask("shorten_wait")
        begin
          yield
        ensure
          session.ask("restore_wait")
        end
      rescue LockBusy
        raise Faults.transaction_gone("innodb_rollback_on_timeout is set") if session.ask("ends_with_wait")[0][0].to_i != 0

        nil
      end

      # Decides on the record once nobody else can change it; nil where a rival's transaction has it.
      def move_free(session, request)
        rows = session.ask("read_free", request.reading)
        rows.any? ? write(session, request, *decision(request, rows), in_transaction: true) : nil
      end

      def decision(request, rows)
        record = Store.record_of(rows[0])
        [record, Operations.begin(record, request.effect, longest_run: request.longest_run, limits: request.limits,
                                                          payload_known: !request.fingerprint.nil?)]
      end

      def write(session, request, record, decision, in_transaction:)
        if decision.move != :nothing
          parameters = request.parameters.merge(
            revision: record.revision, new_reference: decision.new_reference, use_extra: decision.use_extra,
            reason: decision.reason, in_transaction: in_transaction
          )
          return :again if session.ask(MOVES.fetch(decision.move), parameters).empty?
        end
        decision = telling(session, request, decision) if decision.reply == :mismatch
        Store.tell(session, request, decision.event, record.claim, why: decision.reason) if decision.event
        record = Operations::Record.new(**record.to_h, state: "completed", outcome: "missed") if decision.move == :miss
        answer(request, decision, record, acting: request.acts_from_start)
      end

      # The decision with both payloads' fingerprints, and the message that brought the first one, where the record keeps it.
      def telling(session, request, decision)
        stored, message = session.ask("read_payload", request.identity)[0]
        return decision if stored.nil?

        found = message.nil? ? {} : JSON.parse(message)
        number = IDS.filter_map { |name| found[name] }.first
        came = ", which came as message #{number} (#{found["adapter"]})" if number
        reason = "its payload's fingerprint is #{request.fingerprint[0, SHOWN]}…, the first one's #{stored[0, SHOWN]}…#{came}"
        Operations::Decision.new(**decision.to_h, reason: reason)
      end

      def first_claim(request)
        Begun.new(reply: :act, claim: 1, reference: request.reference, acting: request.acts_from_start)
      end

      # Inserted just now, rather than before an acknowledgement was lost: then its lease is to be renewed.
      def new?(record, request)
        record.mine && record.claim == 1 && record.revision == 1 && record.lease_left >= 0.9 * request.lease
      end

      def answer(request, decision, record, acting:)
        claimed = %i[claim take_over take_over_to_look].include?(decision.move)
        Begun.new(
          reply: decision.reply, claim: record.claim + (claimed ? 1 : 0),
          reference: decision.new_reference ? request.reference : record.reference,
          acting: acting || (record.acting && decision.move != :claim), record: record, reason: decision.reason,
          wait: decision.wait, in_doubt: Operations.leaves_doubt?(record, decision.move)
        )
      end
    end
  end
end
