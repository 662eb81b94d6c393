#!/usr/bin/env bash
# Create or refresh the virtual environment that `make` works with.
#
#   scripts/setup.sh VENV PYTHON
#
# Needs Python 3.11 or newer, nothing else: uv is installed into the environment (pip does its work where uv cannot be
# had), and what the system itself lacks is installed by scripts/system-packages.sh on Debian when run as root.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${1:-.venv}
python=${2:-python3}
export UV_PYTHON_DOWNLOADS=never
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'set-up: %s\n' "$*"; }

fail() {
  printf 'set-up: %s\n' "$*" >&2
  exit 1
}

command -v "$python" >/dev/null || fail "$python is not installed. Install Python 3.11 or newer, or name one: make setup PYTHON=/path/to/python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "$("$python" --version) is too old; semel needs 3.11 or newer. Name one: make setup PYTHON=/path/to/python"

scripts/system-packages.sh "$python"

if ! "$venv/bin/python" -c '' 2>/dev/null; then
  say "create $venv with $("$python" --version)"
  "$python" -m venv --clear "$venv"
fi

constraint_of() { sed -n "s/^$1==\\([^ ;]*\\).*/$1==\\1/p" constraints.txt | head -n 1; }

if ! "$venv/bin/uv" --version >/dev/null 2>&1; then
  say 'install uv'
  "$venv/bin/python" -m pip install --quiet "$(constraint_of uv)" || say 'uv cannot be had here; pip does its work'
fi

# pip reads the dev group from pyproject.toml only since 25.1, so both installers are given the plain list.
group=$(mktemp)
trap 'rm -f "$group"' EXIT
"$venv/bin/python" scripts/dependency_group.py dev >"$group"
for library in libmariadb mariadb mysqlclient; do
  pkg-config --exists "$library" 2>/dev/null && can_build_mysqlclient=yes
done
if [ -n "${can_build_mysqlclient:-}" ]; then
  "$venv/bin/python" scripts/dependency_group.py mysqlclient >>"$group"
else
  say 'mysqlclient is left out, and its tests: it is built, which needs libmariadb-dev and pkg-config'
fi
project='.[embedded,asyncpg,sqlalchemy,django,mysql,demo]'

say "install semel (editable), its extras and the development tools into $venv"
if "$venv/bin/uv" --version >/dev/null 2>&1; then
  "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" -c constraints.txt -r "$group" -e "$project"
else
  "$venv/bin/python" -m pip install --quiet -c constraints.txt -r "$group" -e "$project"
fi
say 'done'
