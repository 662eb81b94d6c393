# frozen_string_literal: true

require "securerandom"

module Semel
  module Guard
    # A Row on a caller's connection is refused where that leads to another database than the guard has its records in: one
    # operation could act once in each. Both sides are asked, once for a connection.
    class SameDatabase
      # +apart+ asks on a connection of the guard's own.
      def initialize(&apart)
        @apart = apart
        @proven = ObjectSpace::WeakMap.new # the driver's connection => a number for the name of its database
      end

      # Raises UnsafeClaim unless the caller's session is in the guard's database.
      def require(job_type, session)
        other = send(session.dialect, session) # one of the three below
        return if other.nil?

        raise UnsafeClaim.new(
          "A Row of #{job_type} was called on a connection to another database than its guard has (#{other}): one operation " \
          "could act once in each.",
          holds: "Nothing was claimed and nothing done.",
          remedy: "Give on: a connection to the database of the guard, or make a guard over this one."
        )
      end

      private

      # What differs, in words; nil: nothing does.
      def postgresql(session)
        return if @proven.key?(session.connection)

        here, there = both(session) { |each| each.ask("identify").first }
        return differ(here[0], there[0]) if here != there

        @proven[session.connection] = 0
        nil
      end

      # The server of a connection is proven once; which of its databases is in use is asked each time.
      def mysql(session)
        here = session.ask("identify")[0][0]
        return if here && @proven[session.connection] == here.hash

        there = @apart.call { |own| own.ask("identify")[0][0] }
        return differ(here, there) if here != there || !on_one_server?(session)

        @proven[session.connection] = here.hash
        nil
      end

      def sqlite(session)
        home = @apart.call { |own| main_file(own) }
        return if same_file?(main_file(session), home)

        file = session.ask("find_tables").first&.first
        return if file.nil? || same_file?(file, home) # without tables: what follows says so

        "#{file.empty? ? "in memory" : file}; #{home}"
      end

      # Whether the guard's own connection sees a lock that the caller's takes: copies of a server share every number.
      def on_one_server?(session)
        sign = { sign: "semel_#{SecureRandom.hex(16)}" }
        return false unless session.ask("take_sign", sign)[0][0] == 1

        begin
          @apart.call { |own| own.ask("find_sign", sign)[0][0] == 1 }
        ensure
          session.ask("drop_sign", sign)
        end
      end

      def both(session, &block)
        [yield(session), @apart.call(&block)]
      end

      def main_file(session)
        session.ask("identify").find { |row| row[1] == "main" }.to_a[2].to_s
      end

      def same_file?(one, other)
        one == other || (!one.empty? && File.identical?(one, other))
      end

      def differ(here, there)
        here == there ? "both are called #{here}, on two servers" : "#{here || "none"}; #{there || "none"}"
      end
    end
  end
end
