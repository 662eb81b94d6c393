# frozen_string_literal: true

require "spec_helper"

# A process is killed before and after each statement of an attempt, and the operation is delivered again.
Databases::URLS.each_key do |dialect|
  RSpec.describe "a killed process on #{dialect}" do
    include_context "with a database", dialect

    # Made before the fork, which would make its own.
    let!(:key) { "op-#{SecureRandom.hex(6)}" }
    let!(:effects) { File.join(Dir.mktmpdir, "effects") }

    def made
      File.exist?(effects) ? File.read(effects).length : 0
    end

    def deliver(guard, effect)
      guard.operation("charge", key: key, acting: :explicit, effect: effect) do |op|
        op.acting { File.open(effects, "a") { |file| file.syswrite("x") } }
        op.done("charged")
      end
    end

    # Kills the process that delivers, at a statement; answers whether it came so far.
    def killed_at(moment, effect)
      pid = fork do
        watch = ->(*now) { Process.kill(:KILL, Process.pid) if now == moment }
        deliver(Semel.once(url, logger: logger, watch: watch), effect)
        exit!(0)
      end
      _, status = Process.wait2(pid)
      status.signaled?
    end

    statements = { "postgresql" => %w[insert act complete], "mysql" => %w[insert read act complete],
                   "sqlite" => %w[insert act complete] }
    # What the next delivery after the lease comes to: the state, and how many effects there are.
    after = {
      [:before, "insert"] => ["completed acted", 1], [:after, "insert"] => ["completed acted", 1],
      [:before, "read"] => ["completed acted", 1], [:after, "read"] => ["completed acted", 1],
      [:before, "act"] => ["completed acted", 1], [:after, "act"] => ["held", 0],
      [:before, "complete"] => ["held", 1], [:after, "complete"] => ["completed acted", 1]
    }

    statements.fetch(dialect).product(%i[before after]).each do |name, at|
      it "#{at} #{name}" do
        expect(killed_at([at, name], Semel::Hold.new)).to be(true)
        stored.age(key)
        begin
          deliver(once, Semel::Hold.new)
        rescue Semel::Held
          nil
        end
        expect([state, made]).to eq(after.fetch([at, name]))
      end
    end

    it "acts again where a second effect is accepted, and is found where it can be asked for" do
      expect(killed_at([:before, "complete"], Semel::AcceptDuplicate.new)).to be(true)
      stored.age(key)
      deliver(once, Semel::AcceptDuplicate.new)
      expect([state, made]).to eq(["completed acted", 2])
    end
  end
end
