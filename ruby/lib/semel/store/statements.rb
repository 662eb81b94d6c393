# frozen_string_literal: true

module Semel
  module Store
    # The guard's statements, read from the files that the Python package has: one statement a file, named by its verb.
    # A file may hold +:name+, a parameter, and +{name}+, a literal that the statement is made with; in strings and
    # comments they mean nothing. A built gem carries copies of the files beside this code.
    class Statements
      NAMES = %w[
        act claim complete complete_late complete_row drop_sign ends_with_wait event extend find_sign find_tables hold hold_mine
        identify insert insert_row look_later mark miss read read_free read_isolation read_locked read_only read_payload release
        renew restore_wait shorten_wait take_over take_over_to_look take_sign touch uncertain unmark
      ].freeze
      FOLDERS = [File.expand_path("../sql", __dir__), File.expand_path("../../../../src/semel/sql", __dir__)].freeze
      TOKENS = %r{
        (?<comment>--[^\n]*\n?|/\*.*?\*/)
        | (?<string>'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\$(?<tag>\w*)\$.*?\$\k<tag>\$)
        | (?<![:\w]):(?<parameter>[a-z_]\w*)
        | \{(?<literal>[a-z_]+)\}
      }mx
      PLACEHOLDERS = {
        "postgresql" => ->(name, order) { "$#{(order.index(name) || (order.push(name).length - 1)) + 1}" },
        "mysql" => ->(name, order) { order.push(name) && "?" },
        "sqlite" => ->(name, order) { order.include?(name) || order.push(name) and ":#{name}" }
      }.freeze
      NAME = /\A[a-z_][a-z0-9_]{0,62}\z/

      # A statement's text as its driver takes it, and the names of its parameters in the driver's order.
      Text = Struct.new(:name, :text, :order)

      attr_reader :dialect

      def initialize(dialect, schema: "semel", folder: nil)
        @dialect = dialect
        @schema = quote(schema)
        folder ||= FOLDERS.find { |each| Dir.exist?(each) } or raise ConfigurationError, "The gem has no statements in it."
        @raw = NAMES.to_h { |name| [name, read(File.join(folder, "guard", dialect, "#{name}.sql"))] }.compact.freeze
        @texts = @raw.reject { |_, raw| raw.match?(/\{(?!schema)/) }.to_h { |name, raw| [name, make(name, raw, {})] }.freeze
      end

      # The statement called +name+, made with the given literals (names, quoted here).
      def [](name, literals = {})
        literals.empty? ? @texts.fetch(name) : make(name, @raw.fetch(name), literals)
      end

      private

      def read(path)
        File.read(path, encoding: "UTF-8") if File.exist?(path)
      end

      def make(name, raw, literals)
        named = { "schema" => @schema }.merge(literals.transform_keys(&:to_s).transform_values { |value| quote(value) })
        order = []
        text = raw.gsub(TOKENS) do |token|
          found = Regexp.last_match
          if found[:comment] then ""
          elsif found[:parameter] then PLACEHOLDERS.fetch(dialect).call(found[:parameter], order)
          elsif found[:literal] then named.fetch(found[:literal])
          else
            token
          end
        end
        Text.new(name, "/* semel guard/#{name} */ #{text.strip}", order.freeze).freeze
      end

      # A schema's, table's or savepoint's name, quoted.
      def quote(name)
        unless name.match?(NAME)
          raise ConfigurationError.new(
            "#{name.inspect} is not a usable name in the database.",
            remedy: "Use lower-case letters, digits and underscores, at most 63, not starting with a digit."
          )
        end
        dialect == "mysql" ? "`#{name}`" : "\"#{name}\""
      end
    end
  end
end
