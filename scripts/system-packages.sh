#!/usr/bin/env bash
# Install what set-up and the tests need from the system: on Debian and its kin, as root, and only what is missing.
# Elsewhere it says what is missing and goes on; whoever needs it then fails or skips with its own message.
#
#   scripts/system-packages.sh PYTHON
set -euo pipefail

python=${1:-python3}
missing=()

# A venv needs ensurepip, which Debian keeps in a package of its own.
"$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)

# PostgreSQL refuses to run as root; unshare starts it as another user.
command -v unshare >/dev/null || missing+=(util-linux)

# The guard is tested on MariaDB too; its server is found beside the ordinary commands.
PATH=$PATH:/usr/sbin command -v mariadbd >/dev/null || missing+=(mariadb-server)

# The brokers that the adapters are tested on. RabbitMQ is started by the program in its library folder, as whoever runs the tests.
command -v redis-server >/dev/null || missing+=(redis-server)
[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || missing+=(rabbitmq-server)
command -v nats-server >/dev/null || missing+=(nats-server)

# The Ruby side: Sidekiq, the connections that it works over, and its test tool.
has_gem() { command -v ruby >/dev/null && ruby -e "gem '$1'" 2>/dev/null; }
for gem in sidekiq:ruby-sidekiq pg:ruby-pg mysql2:ruby-mysql2 sqlite3:ruby-sqlite3 activerecord:ruby-activerecord rspec:ruby-rspec; do
  has_gem "${gem%%:*}" || missing+=("${gem##*:}")
done
command -v rubocop >/dev/null || missing+=(rubocop)

# mysqlclient, one of MariaDB's drivers, is built where it is installed.
for library in libmariadb mariadb mysqlclient; do
  pkg-config --exists "$library" 2>/dev/null && found_library=$library
done
[ -n "${found_library:-}" ] || missing+=(libmariadb-dev pkg-config gcc libc6-dev)
"$python" -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null || missing+=(python3-dev)

[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  printf 'set-up: install from Debian: %s\n' "${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  printf 'set-up: this machine lacks: %s (Debian names); install them if a later step fails\n' "${missing[*]}" >&2
fi
