#!/usr/bin/env bash
# Run what must hold on every PostgreSQL on each one that is here, beside the one that `make test` runs on.
#
#   scripts/test-versions.sh PYTHON [BIN ...]
#
# Taken are /usr/lib/postgresql/*/bin and each BIN, the bin folder of another PostgreSQL. WORKERS (4) processes, and ARGS
# for pytest. It ends with what was run, and with which of 15 to 18 are not here. Fails if a run fails.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${1:?usage: scripts/test-versions.sh PYTHON [BIN ...]}
shift
wanted=(15 16 17 18)
contract=(
  tests/store tests/migrations/test_migrate.py tests/races tests/upkeep tests/queue/test_nine_paths.py
  tests/guard/test_table.py tests/guard/test_row.py
)
# Of the guard's kinds of connection, psycopg's only: the others add a driver, not a version of the server.
chosen='not (test_table.py or test_row.py) or (psycopg and not async and not sqlalchemy and not session)'

version_of() { "$1/postgres" --version | sed -E 's/.*\(PostgreSQL\) ([^ ]+).*/\1/'; }

embedded=$("$python" -c 'from semel.embedded import find_binaries; print(find_binaries().version)')
here=" ${embedded%%.*} "
ran=() failed=()
for bin in /usr/lib/postgresql/*/bin "$@"; do
  [ -x "$bin/initdb" ] && [ -x "$bin/postgres" ] || continue
  version=$(version_of "$bin")
  here+="${version%%.*} "
  [ "$version" = "$embedded" ] && continue
  printf '\n== PostgreSQL %s (%s)\n' "$version" "$bin"
  # shellcheck disable=SC2086 # ARGS are words
  if SEMEL_TEST_PG_BIN=$bin "$python" -m pytest -q -n "${WORKERS:-4}" -k "$chosen" ${ARGS:-} "${contract[@]}"; then
    ran+=("$version")
  else
    failed+=("$version")
  fi
done

missing=()
for major in "${wanted[@]}"; do
  [[ $here == *" $major "* ]] || missing+=("$major")
done
printf '\nPostgreSQL %s: every test (make test)\n' "$embedded"
printf 'the contract passed on: %s\n' "${ran[*]:-none}"
printf 'not here: %s\n' "${missing[*]:-none}"
[ ${#failed[@]} -eq 0 ] || { printf 'FAILED on: %s\n' "${failed[*]}" >&2; exit 1; }
