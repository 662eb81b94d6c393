# frozen_string_literal: true

module Semel
  # Durations as people write them: a number of seconds, words such as "10 min", or ActiveSupport's (5.minutes).
  module Durations
    UNITS = {
      "ms millisecond milliseconds" => 1,
      "s sec secs second seconds" => 1_000,
      "m min mins minute minutes" => 60_000,
      "h hr hrs hour hours" => 3_600_000,
      "d day days" => 86_400_000,
      "w week weeks" => 604_800_000
    }.flat_map { |names, millis| names.split.map { |name| [name, millis] } }.to_h.freeze
    LONGEST = 36_525 * 86_400.0
    EXAMPLES = 'For example 90, "90 s", "10 min" or "24 h".'
    TERM = /\G\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*,?/

    module_function

    # Seconds, as a float. +name+ is what the error calls it.
    def seconds(value, name)
      found = read(value)
      raise ConfigurationError.new("#{name} is #{value.inspect}: not a duration.", remedy: EXAMPLES) if found.nil?
      return found if found.between?(0, LONGEST)

      raise ConfigurationError.new("#{name} is #{value.inspect}: negative, or more than a century.", remedy: EXAMPLES)
    end

    # In words: "10 min", "1 h 30 min", "500 ms".
    def describe(seconds)
      millis = (seconds * 1_000).round
      return "#{millis} ms" if millis.positive? && millis < 1_000

      parts = { "h" => 3_600_000, "min" => 60_000 }.filter_map do |word, size|
        whole, millis = millis.divmod(size)
        "#{whole} #{word}" if whole.positive?
      end
      rest = (millis % 1_000).zero? ? millis / 1_000 : millis / 1_000.0
      parts << "#{rest} s" if millis.positive? || parts.empty?
      parts.join(" ")
    end

    def read(value)
      case value
      when String then words(value.strip.downcase)
      when Numeric then value.to_f.finite? ? value.to_f : nil
      else value.respond_to?(:in_seconds) ? value.to_f : nil
      end
    end

    def words(text)
      text += " s" if text.match?(/\A\d+(\.\d+)?\z/)
      millis = 0.0
      position = 0
      while position < text.length && (term = TERM.match(text, position)) && UNITS.key?(term[2])
        millis += term[1].to_f * UNITS[term[2]]
        position = term.end(0)
      end
      position == text.length && !text.empty? ? millis / 1_000 : nil
    end

    private_class_method :read, :words
  end
end
