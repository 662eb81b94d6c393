# frozen_string_literal: true

# Loaded into workers by +RUBYOPT=-rsemel/faults+ while their job is replayed: it wraps the watched calls, reports where
# deliveries are, and does there what it is told. Nothing in the gem or in an application knows of it.
#
# It needs Ruby 2.7 and the standard library. It requires that library only when a delivery is under way: in a process of
# Bundler's, what is required earlier could be another version than the one that the application asks for.
module Semel
  # Where workers report and ask. Everything here is for replay alone.
  module Faults
    # What is raised where a worker is told to raise.
    class Raised < StandardError
    end

    DELIVERY = :semel_replay_delivery
    NONCE = :semel_replay_nonce
    FAILED = :semel_replay_failed

    # What replay wrote for its workers: a flat object of JSON.
    class Settings
      MEMBER = /"(\w+)"\s*:\s*("(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^,}\s]+)/m
      TEXT = /"((?:[^"\\]|\\.)*)"/

      attr_reader :socket, :journal, :watch, :dwell, :blind, :unconstrained

      def initialize(path)
        told = File.read(path, encoding: "UTF-8").scan(MEMBER).to_h
        @socket = texts(told["socket"]).first
        @journal = texts(told["journal"]).first
        @watch = texts(told["watch"])
        @dwell = told.fetch("dwell", "0").to_f
        @blind = told["blind"] == "true"
        @unconstrained = told["unconstrained"] == "true"
      end

      private

      def texts(told)
        told.to_s.scan(TEXT).map { |found| plain(found[0]) }
      end

      def plain(text)
        text.gsub(/\\u(\h{4})|\\(.)/m) { Regexp.last_match(1) ? [Regexp.last_match(1).hex].pack("U") : Regexp.last_match(2) }
      end
    end

    # Arguments as a text that is the same in every process; of objects that are no values only the class is known.
    module Digests
      module_function

      def of(arguments)
        require "digest"
        Digest::SHA256.hexdigest(text(arguments))[0, 32]
      end

      def text(value)
        case value
        when nil, true, false, Numeric, String, Symbol then "#{value.class}:#{value}"
        when Array then "[#{value.map { |each| text(each) }.join(",")}]"
        when Hash then "{#{value.map { |name, each| "#{text(name)}=#{text(each)}" }.sort.join(",")}}"
        when Struct then "#{value.class}#{text(value.to_h)}"
        else timely?(value) ? "#{value.class}:#{value}" : value.class.to_s
        end
      end

      def timely?(value)
        value.is_a?(Time) || (defined?(::Date) && value.is_a?(::Date))
      end
    end

    # What ends this process with its replay: one that is left behind may be without its guard. A connection that nothing
    # comes over, and ends when the replay does.
    class Lifeline
      # A shell that waits for the replay's end, and ends the process that it was started by, if that is still there.
      KILL_IF_LEFT = <<~'SHELL'
        read gone
        parent=$(ps -o ppid= -p $$ 2>/dev/null || cut -d' ' -f4 /proc/$$/stat)
        [ "$((parent))" = %<pid>d ] && kill -9 %<pid>d
      SHELL

      def initialize(settings)
        @settings = settings
      end

      # Once for each process: a fork has no thread of its parent's.
      def hold
        return if @held == Process.pid

        @held = Process.pid
        line = connect
        Thread.new { follow(line) }
      rescue SystemCallError
        end_here
      end

      # While this process is stopped, and can do nothing itself.
      def keep
        line = connect
        keeper = Process.spawn("/bin/sh", "-c", format(KILL_IF_LEFT, pid: Process.pid), in: line)
        yield
      ensure
        end_keeper(keeper) if keeper
        line&.close
      end

      private

      def follow(line)
        line.read
      rescue SystemCallError, IOError
        nil
      ensure
        end_here
      end

      def end_here
        Process.kill(:KILL, Process.pid)
      end

      # The extension alone: what the library has around it is a gem that an application may want in another version.
      def connect
        require "socket.so"
        line = UNIXSocket.new(@settings.socket)
        line.write("{\"follow\": #{Process.pid}}\n")
        line
      end

      def end_keeper(keeper)
        Process.kill(:KILL, keeper)
        Process.wait(keeper)
      rescue SystemCallError
        nil
      end
    end

    # One line to the journal, then the same to replay, whose answer is done.
    class Reporter
      def initialize(settings)
        @settings = settings
        @lifeline = Lifeline.new(settings)
        @lifeline.hold
      end

      # Reports a point; answers +:go+, or +:cut+ where the caller is to lose its connection. Kills, stops, raises.
      def at(point, digest: "", detail: {})
        @lifeline.hold
        line = line(point, digest, detail)
        File.open(@settings.journal, File::WRONLY | File::APPEND | File::CREAT, 0o600) do |journal|
          journal.syswrite("\n#{line.chomp}") # in front: the line before may have been cut by a kill
        end
        obey(ask(line), point)
      end

      private

      def line(point, digest, detail)
        require "json"
        told = { point: point, pid: Process.pid, at: Process.clock_gettime(Process::CLOCK_MONOTONIC),
                 thread: Thread.current.object_id, delivery: Thread.current.thread_variable_get(DELIVERY).to_s,
                 digest: digest, detail: detail }
        "#{JSON.generate(told)}\n"
      end

      # Nobody answers any more where replay is over.
      def ask(line)
        require "socket"
        UNIXSocket.open(@settings.socket) do |socket|
          socket.write(line)
          JSON.parse(socket.gets || "{}")["do"]
        end
      rescue SystemCallError, IOError
        "go"
      end

      def obey(told, point)
        case told
        when "kill"
          Process.kill(:KILL, Process.pid)
          sleep
        when "stop" then stop
        when "raise" then raise Raised, "replay raises at #{point}"
        when "cut" then return :cut
        end
        :go
      end

      # This thread may run on for an instant: the signal is the process's. So it waits to be woken.
      def stop
        woken = false
        before = trap("CONT") { woken = true }
        @lifeline.keep do
          Process.kill(:STOP, Process.pid)
          sleep(0.01) until woken
        end
      ensure
        trap("CONT", before || "DEFAULT")
      end
    end

    # +Class#method+ and +Class.method+: wrapped as soon as the class has the method.
    class Watched
      attr_reader :owner

      def initialize(name, reporter, dwell)
        found = name.match(/\A(?<owner>[\w:]+)(?<kind>[#.])(?<method>[^#.]+)\z/)
        @owner = found && found[:owner]
        @single = found && found[:kind] == "."
        @method = found && found[:method].to_sym
        @name = name
        @reporter = reporter
        @dwell = dwell
      end

      # Wraps it, if it is there by now. Answers whether it did.
      def wrap(owner)
        holder = @single ? owner.singleton_class : owner
        return false unless holder.method_defined?(@method) || holder.private_method_defined?(@method)

        escaped = aliases(holder)
        holder.prepend(wrapper(visibility(holder)))
        @reporter.at("hit", detail: { name: @name })
        escaped.each { |each| @reporter.at("escaped", detail: { name: "#{@owner}##{each}" }) }
        true
      end

      private

      # Other names of the same code, which do not pass the wrapper.
      def aliases(holder)
        own = holder.instance_method(@method)
        (holder.instance_methods(false) + holder.private_instance_methods(false)).select do |name|
          name != @method && holder.instance_method(name) == own
        end
      end

      def visibility(holder)
        return :private if holder.private_method_defined?(@method)

        holder.protected_method_defined?(@method) ? :protected : :public
      end

      def wrapper(visibility)
        method = @method
        called = method(:called)
        Module.new do
          define_method(method) do |*arguments, &block|
            called.call(arguments) { super(*arguments, &block) }
          end
          ruby2_keywords(method)
          send(visibility, method)
        end
      end

      def called(arguments)
        digest = Digests.of(arguments)
        @reporter.at("entry", digest: digest)
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        begin
          result = yield
        rescue Exception => e # rubocop:disable Lint/RescueException
          @reporter.at("raised", digest: digest, detail: { error: e.class.to_s })
          raise
        end
        left = @dwell - (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began)
        sleep(left) if left.positive?
        @reporter.at("return", digest: digest)
        result
      end
    end

    # Where Sidekiq's deliveries begin and end. The whole chain of server middleware is wrapped, so this is outermost,
    # and a delivery is over when Sidekiq is done with it: what is to be retried is in Redis by then.
    module InSidekiq
      def self.chain(faults)
        Module.new do
          define_method(:invoke) do |*arguments, &block|
            # Client middleware gets a pool of connections as well.
            next super(*arguments, &block) unless arguments.length == 3 && arguments[1].is_a?(Hash)

            faults.delivered(arguments[1]["jid"]) { super(*arguments, &block) }
          end
        end
      end

      def self.processor(faults)
        Module.new do
          define_method(:process) do |*arguments|
            super(*arguments)
          ensure
            faults.ended
          end
          private :process
        end
      end
    end

    # The guard's own points, where the gem is loaded.
    module InGuard
      def self.begin(faults)
        Module.new do
          define_method(:first) do |session, request|
            faults.claimed(super(session, request))
          end

          define_method(:known) do |session, request|
            faults.claimed(super(session, request))
          end
        end
      end

      def self.finish(faults)
        Module.new do
          define_method(:complete) do |session, request, **ending|
            faults.completing(session)
            done = super(session, request, **ending)
            faults.completed if done
            done
          end

          define_method(:complete_late) do |session, request, **ending|
            written = super(session, request, **ending)
            faults.completed if written == :written
            written
          end

          define_method(:complete_row) do |session, request, **ending|
            faults.completing(session)
            super(session, request, **ending)
          end
        end
      end

      # A Row is claimed and completed by one commit: the guard's own, unless it is the caller's.
      def self.delivery(faults)
        Module.new do
          define_method(:run_row) do |on, &block|
            acted = false
            result = super(on) do |*given|
              acted = true
              block.call(*given)
            end
            faults.completed if acted && on.nil?
            result
          end
        end
      end

      # As the guard would be without its unique constraint: its claim is a plain insert.
      def self.statements(_faults)
        Module.new do
          define_method(:read) do |path|
            super(path)&.gsub(/ON CONFLICT \(.*?\) DO NOTHING/m, "")
          end
          private :read
        end
      end

      # Every delivery is an operation of its own: the guard sees no repeat.
      def self.keys(faults)
        Module.new do
          define_method(:key) do |*arguments, **options|
            found = super(*arguments, **options)
            found.class.new(faults.blinded(found.digest), found.label, found.text, found.version)
          end
        end
      end
    end

    # All of it in one process.
    class Loaded
      # A module, a method that it must have, and what is put before it.
      PLACES = {
        "Sidekiq::Middleware::Chain" => [:invoke, false, ->(faults) { InSidekiq.chain(faults) }],
        "Sidekiq::Processor" => [:process, false, ->(faults) { InSidekiq.processor(faults) }],
        "Semel::Store::Begin" => [:known, true, ->(faults) { InGuard.begin(faults) }],
        "Semel::Store::Finish" => [:complete_row, true, ->(faults) { InGuard.finish(faults) }],
        "Semel::Store::Statements" => [:read, false, ->(faults) { InGuard.statements(faults) if faults.unconstrained? }],
        "Semel::Guard::Delivery" => [:run_row, false, ->(faults) { InGuard.delivery(faults) }],
        "Semel::Keys" => [:key, true, ->(faults) { InGuard.keys(faults) if faults.blind? }]
      }.freeze
      NAME = Module.instance_method(:name)

      def initialize(settings)
        @settings = settings
        @reporter = Reporter.new(settings)
        @watched = settings.watch.map { |name| Watched.new(name, @reporter, settings.dwell) }
        @places = PLACES.dup
        @lock = Thread::Mutex.new
      end

      def blind?
        @settings.blind
      end

      def unconstrained?
        @settings.unconstrained
      end

      # Wraps what is there, and from now on what is defined.
      def start
        wrap_all
        @trace = TracePoint.new(:end) { |point| ended_definition(point.self) }
        @trace.enable
      end

      # One delivery of Sidekiq's.
      def delivered(delivery)
        wrap_all
        here(DELIVERY => delivery, NONCE => rand.to_s, FAILED => nil)
        @reporter.at("begin")
        begin
          yield
        rescue Exception => e # rubocop:disable Lint/RescueException
          here(FAILED => e.class.to_s)
          raise
        end
      end

      # Sidekiq is done with what this thread had, if it had anything.
      def ended
        return if there(DELIVERY).nil?

        @reporter.at("end", detail: there(FAILED) ? { error: there(FAILED) } : {})
      ensure
        here(DELIVERY => nil, NONCE => nil, FAILED => nil)
      end

      # Past the commit of a claim; the answer is handed on.
      def claimed(begun)
        return begun unless begun.respond_to?(:reply) && %i[act look].include?(begun.reply)

        lose if @reporter.at("claimed", detail: { claim: begun.claim }) == :cut
        begun
      end

      # Before the completion is written. Where it is told to, the connection is lost under it.
      def completing(session)
        return unless @reporter.at("completing") == :cut

        connection = session.connection
        return unless connection.respond_to?(:socket)

        require "socket"
        socket = Socket.for_fd(connection.socket)
        socket.autoclose = false
        socket.shutdown
      end

      # Past the commit of the completion, whose answer can get lost.
      def completed
        lose if @reporter.at("completed") == :cut
      end

      def blinded(digest)
        require "digest"
        Digest::SHA256.hexdigest("#{digest}#{there(NONCE) || rand}")
      end

      private

      def lose
        raise ::Semel::DatabaseUnreachable, "Replay lost the connection's answer."
      end

      def here(values)
        values.each { |name, value| Thread.current.thread_variable_set(name, value) }
      end

      def there(name)
        Thread.current.thread_variable_get(name)
      end

      def ended_definition(defined)
        wrap(NAME.bind_call(defined), defined) if defined.is_a?(Module)
      end

      # What no +class … end+ made, or was there before.
      def wrap_all
        (@places.keys + @watched.map(&:owner)).compact.each do |name|
          found = constant(name)
          wrap(name, found) if found
        end
      end

      # Without loading it.
      def constant(name)
        name.split("::").reject(&:empty?).reduce(Object) do |within, each|
          return nil if within.autoload?(each) || !within.const_defined?(each, false)

          within.const_get(each, false)
        end
      rescue NameError
        nil
      end

      def wrap(name, defined)
        return if name.nil?

        mine = @watched.select { |each| each.owner&.delete_prefix("::") == name }
        return if mine.empty? && !@places.key?(name)

        alone do
          @watched -= mine.select { |each| each.wrap(defined) }
          put_before(defined, name) if @places.key?(name)
        end
      end

      def put_before(defined, name)
        method, single, make = @places[name]
        holder = single ? defined.singleton_class : defined
        return unless holder.method_defined?(method) || holder.private_method_defined?(method)

        @places.delete(name)
        made = make.call(self)
        holder.prepend(made) if made
      end

      # What it requires can define classes, too.
      def alone(&block)
        @lock.owned? ? nil : @lock.synchronize(&block)
      end
    end

    settings = ENV.fetch("SEMEL_REPLAY", "")
    Loaded.new(Settings.new(settings)).start unless settings.empty? || !File.exist?(settings)
  end
end
