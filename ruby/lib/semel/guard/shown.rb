# frozen_string_literal: true

module Semel
  # What happens to one delivery of an operation, from begin to end. It knows nothing of queues.
  module Guard
    LONGEST_ERROR = 2000

    module_function

    # An exception in a line that every database stores, whatever bytes its message has; its own +message+ may fail.
    def shown(error)
      "#{text(error.class.to_s)}: #{text(message_of(error))}".tr("\0", "\ufffd")[0, LONGEST_ERROR]
    end

    def message_of(error)
      error.message.to_s
    rescue StandardError => e
      "<its message raised #{e.class}>"
    end

    def text(value)
      value = value.dup.force_encoding(Encoding::UTF_8) if value.encoding == Encoding::BINARY
      value.encode(Encoding::UTF_8, invalid: :replace, undef: :replace, replace: "\ufffd").scrub("\ufffd")
    end
  end
end
