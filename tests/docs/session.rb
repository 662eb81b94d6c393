# frozen_string_literal: true

# A Ruby session for the blocks of one page: takes a block a line (JSON), answers what it printed and raised.

require 'json'
require 'stringio'

answers = $stdout.dup
$LOAD_PATH.unshift(Dir.pwd)
names = TOPLEVEL_BINDING

$stdin.each_line do |line|
  asked = JSON.parse(line)
  $stdout = printed = StringIO.new
  raised = nil
  begin
    names.eval(asked['text'], asked['place'])
  rescue Exception => e # rubocop:disable Lint/RescueException
    raised = [e.class.name, "#{e.full_message(highlight: false, order: :bottom)}\n#{e.class}: #{e.message}"]
  end
  $stdout = $stderr
  answers.puts(JSON.generate({ printed: printed.string, raised: raised }))
  answers.flush
end
