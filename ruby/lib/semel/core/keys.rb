# frozen_string_literal: true

require "bigdecimal"
require "date"
require "openssl"
require "time"

module Semel
  # An identifier that is a UUID in other languages; a plain string in Ruby. Made by +Semel.uuid+.
  class Uuid
    attr_reader :to_s

    def initialize(text)
      digits = text.to_s.downcase.delete_prefix("urn:").delete_prefix("uuid:").delete("{}-")
      unless digits.match?(/\A[0-9a-f]{32}\z/)
        raise KeyRefused.new("#{text.inspect} is no UUID.", remedy: "Give 32 hexadecimal digits.")
      end

      @to_s = digits.unpack("a8a4a4a4a12").join("-").freeze
      freeze
    end

    def ==(other)
      other.is_a?(Uuid) && other.to_s == to_s
    end
    alias eql? ==

    def hash
      to_s.hash
    end
  end

  # A secret for keys that hold personal data, with a number that rises at each rotation (from 1).
  class Secret
    attr_reader :value, :version

    def initialize(value, version: 1)
      raise KeyRefused, "A secret for keys needs at least 16 bytes." if value.bytesize < 16
      raise KeyRefused, "A secret's version starts at 1; 0 means that there is none." if version < 1

      @value = value.dup.force_encoding(Encoding::BINARY).freeze
      @version = version
      freeze
    end

    def inspect
      "#<Semel::Secret version=#{version}>"
    end
  end

  # The key of one business operation, and the fingerprint of its payload: canonical, typed, and the same as in Python.
  # Each part is written with its type and its length, so that no two lists of parts give the same text; the text is hashed.
  # tests/keys.json holds vectors.
  module Keys
    FORMAT = "semel-key-1"
    FINGERPRINT_FORMAT = "semel-fingerprint-1"
    LONGEST_LABEL = 200
    MOST_DIGITS = 1000

    # A computed key: 64 hexadecimal digits, a label for people, the version of its secret (0: none).
    # +text+ is what was hashed; it can hold personal data and is never stored.
    Key = Struct.new(:digest, :label, :text, :version)

    module_function

    # The key for one value or an array of parts. Raises KeyRefused for what makes no stable key.
    def key(value, secret: nil, label: true)
      parts = value.is_a?(Array) ? value : [value]
      raise KeyRefused.new("The key is an empty array.", remedy: "Give at least one part.") if parts.empty?

      text = "#{FORMAT}|#{parts.length}|" + parts.each_with_index.map { |part, place| key_part(part, place) }.join
      return Key.new(digest(text, nil), label ? label_of(parts) : nil, text, 0) if secret.nil?

      Key.new(digest(text, secret), nil, text, secret.version)
    end

    # The fingerprint of named payload fields, 64 hexadecimal digits. Their order does not matter.
    def fingerprint(payload, secret: nil)
      digest("#{FINGERPRINT_FORMAT}|#{value_of(payload)}", secret)
    end

    def digest(text, secret)
      return OpenSSL::Digest::SHA256.hexdigest(text) if secret.nil?

      OpenSSL::HMAC.hexdigest("SHA256", secret.value, text)
    end

    def key_part(part, place)
      name = "Part #{place + 1} of the key"
      own = "Give every operation a key of its own."
      raise KeyRefused.new("#{name} is nil.", remedy: own) if part.nil?

      if part.is_a?(Float)
        raise KeyRefused.new("#{name} is a float (#{part}), which has no one way to be written.",
                             remedy: "Give a BigDecimal or an Integer.")
      end
      raise KeyRefused.new("#{name} is an empty string.", remedy: own) if part.respond_to?(:empty?) && part.empty?

      scalar(part, name) || raise(
        KeyRefused.new("#{name} is a #{part.class}, which makes no key.",
                       remedy: "Give String, Symbol, Integer, true, false, Semel.uuid, Date, Time or BigDecimal.")
      )
    end

    # +value+ with its type and length, or nil for what is no scalar of a key.
    def scalar(value, name)
      case value
      when true then tagged("b", "1")
      when false then tagged("b", "0")
      when Integer then tagged("i", whole(value, name))
      when String, Symbol then tagged("s", text(value.to_s, name))
      when Uuid then tagged("u", value.to_s)
      when BigDecimal then tagged("n", decimal(value, name))
      when DateTime, Time then tagged("t", instant(value, name))
      when Date then tagged("d", day(value, name))
      end
    end

    # Length in bytes of UTF-8, so that every language counts alike.
    def tagged(tag, text)
      "#{tag}#{text.bytesize}:#{text},"
    end

    def text(value, name)
      encoded = value.encode(Encoding::UTF_8)
      return encoded if encoded.valid_encoding?

      raise KeyRefused, "#{name} is no text in #{value.encoding}."
    rescue EncodingError
      raise KeyRefused.new("#{name} is no text in #{value.encoding}.", remedy: "Give it its own encoding, or UTF-8.")
    end

    def whole(value, name)
      raise too_long(name) if value.abs >= 10**MOST_DIGITS

      value.to_s
    end

    # Plain digits without an exponent or trailing zeros: 1.00, 1.0 and 1 are one number.
    def decimal(value, name)
      raise KeyRefused, "#{name} is #{value}, which is no number." unless value.finite?
      return "0" if value.zero?

      digits = value.split[1].length
      raise too_long(name) if value.exponent > MOST_DIGITS || digits - value.exponent > MOST_DIGITS

      value.to_s("F").sub(/\.0\z/, "")
    end

    def instant(value, name)
      moved = value.is_a?(DateTime) ? value.new_offset(0) : value.getutc
      raise outside(name, value) unless moved.year.between?(1, 9999)

      moved.strftime("%Y-%m-%dT%H:%M:%S.%6NZ")
    end

    def day(value, name)
      raise outside(name, value) unless value.year.between?(1, 9999)

      value.strftime("%Y-%m-%d")
    end

    def outside(name, value)
      KeyRefused.new("#{name} is #{value}, which lies outside the years 1 to 9999.")
    end

    def too_long(name)
      KeyRefused.new("#{name} is a number of more than #{MOST_DIGITS} digits.", remedy: "Give it as text, if it is meant.")
    end

    # A payload's value: scalars as in keys, and besides nil, floats, arrays and hashes with sorted names.
    def value_of(value)
      case value
      when nil then "z0:,"
      when Float then tagged("f", float(value))
      when Hash
        named = value.map { |name, each| [field(name), value_of(each)] }
        tagged("m", named.sort_by(&:first).map { |name, each| tagged("k", name) + each }.join)
      when Array then tagged("l", value.map { |each| value_of(each) }.join)
      else
        scalar(value, "A payload field") ||
          raise(KeyRefused.new("A payload field is a #{value.class}, which has no fingerprint.",
                               remedy: "Name fields of plain types."))
      end
    end

    def field(name)
      return text(name.to_s, "A payload field's name") if name.is_a?(String) || name.is_a?(Symbol) || name.is_a?(Integer)

      raise KeyRefused.new("A payload field's name is a #{name.class}.", remedy: "Give a String or a Symbol.")
    end

    # As Python writes it: the shortest digits that read back, and an exponent without ".0".
    def float(value)
      return value.nan? ? "nan" : (value.positive? ? "inf" : "-inf") unless value.finite?

      value.to_s.sub(/\.0e/, "e")
    end

    def label_of(parts)
      shown = parts.map do |part|
        case part
        when DateTime, Time then part.iso8601
        when BigDecimal then part.to_s("F").sub(/\.0\z/, "")
        else text(part.to_s, "A part of the key")
        end
      end
      shown.join("/").tr("\0", "\ufffd")[0, LONGEST_LABEL]
    end
  end
end
