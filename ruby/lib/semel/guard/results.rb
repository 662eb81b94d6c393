# frozen_string_literal: true

require "json"

module Semel
  module Guard
    # The result that a repeat is answered with. Completion never depends on one that can be stored.
    module Results
      LONGEST = 64 * 1024

      module_function

      # The result as JSON (nil: none), and why it had to be dropped (nil: it was not).
      def encode(result)
        return [nil, nil] if result.nil?

        text = JSON.generate(plain(result))
        return [nil, "#{text.bytesize} bytes, or a NUL in it"] if text.bytesize > LONGEST || text.include?("\\u0000")

        [text, nil]
      rescue TypeError, ArgumentError, EncodingError, JSON::JSONError, SystemStackError => e
        [nil, e.message]
      end

      # Of plain types, since JSON would write the rest as what their to_s shows.
      def plain(value)
        case value
        when nil, true, false, String, Integer then value
        when Symbol, Uuid then value.to_s
        when Float
          raise TypeError, "#{value} is no number of JSON's" unless value.finite?

          value
        when BigDecimal then Keys.decimal(value, "the result")
        when DateTime, Time then value.iso8601(6)
        when Date then value.iso8601
        when Array then value.map { |each| plain(each) }
        when Hash then value.to_h { |name, each| [plain(name).to_s, plain(each)] }
        else raise TypeError, "a #{value.class} is no plain value"
        end
      rescue KeyRefused => e
        raise TypeError, e.happened
      end
    end
  end
end
