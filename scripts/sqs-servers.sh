#!/usr/bin/env bash
# Make the SQS servers that tests run on, each apart from the project's own environment: ministack (it pins a botocore of
# its own) and, where npm is, fauxqs as the second opinion. What is there in the right version already is left alone.
#
#   scripts/sqs-servers.sh VENV
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${1:-.venv}
ministack=1.5.33
fauxqs=1.9.2
export UV_PYTHON_DOWNLOADS=never
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'sqs-servers: %s\n' "$*"; }

has_ministack() {
  "$venv/ministack/bin/python" -c "import importlib.metadata as m, sys; sys.exit(m.version('ministack') != '$ministack')" 2>/dev/null
}
has_fauxqs() { grep -qs "\"version\": \"$fauxqs\"" "$venv/fauxqs/node_modules/fauxqs/package.json"; }

if ! has_ministack; then
  say "ministack $ministack into $venv/ministack"
  "$venv/bin/python" -m venv --clear "$venv/ministack"
  if "$venv/bin/uv" --version >/dev/null 2>&1; then
    "$venv/bin/uv" pip install --quiet --python "$venv/ministack/bin/python" "ministack==$ministack"
  else
    "$venv/ministack/bin/python" -m pip install --quiet "ministack==$ministack"
  fi
fi

if ! has_fauxqs; then
  if command -v npm >/dev/null; then
    say "fauxqs $fauxqs into $venv/fauxqs"
    mkdir -p "$venv/fauxqs"
    npm install --silent --no-audit --no-fund --no-package-lock --prefix "$venv/fauxqs" "fauxqs@$fauxqs" >/dev/null
  else
    say 'no npm here: fauxqs, the second opinion, is left out'
  fi
fi
say 'done'
