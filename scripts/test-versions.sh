#!/usr/bin/env bash
# Run the contract, which is what must hold on every PostgreSQL, on each one beside that which `make test` runs on.
#
#   scripts/test-versions.sh PYTHON [BIN ...]
#
# Taken are each BIN, the bin folder of a PostgreSQL; those of fetch-postgresql.sh; and, of majors that are missing then,
# /usr/lib/postgresql/*/bin. WORKERS (4) processes, and ARGS for pytest. It ends with what was run, and with which of 15 to
# 18 could not be had. Fails if a run fails; with CI set, also if one of them is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${1:?usage: scripts/test-versions.sh PYTHON [BIN ...]}
shift
wanted=(15 16 17 18)
# What asks the server for something that another version may answer otherwise: the statements, the locks, the migrations,
# what a kill leaves. Commands, documents and examples are not among them.
contract=(
  tests/store/test_enqueue.py tests/store/test_states.py tests/queue/test_nine_paths.py tests/operate/test_acts.py
  tests/migrations tests/upkeep tests/races tests/crash/test_transactions.py
  tests/guard/test_table.py tests/guard/test_row.py tests/guard/test_rivals.py
  tests/guard_people/test_decisions.py tests/guard_people/test_upkeep.py
  tests/guard_races tests/guard_crash/test_points.py tests/guard_crash/test_leases.py
)
# Not the guard's other databases; of its kinds of connection psycopg's alone, for the others add a driver, not a version
# of the server; and where the same is told twice (by another tool, another flavour of a handler), once.
chosen='not mysql and not sqlite'
chosen+=' and (not (test_table.py or test_row.py) or (psycopg and not async and not sqlalchemy and not session))'
chosen+=' and not test_django and not test_alembic and not large_payload and not add_row_sync and not test_slots.py'
export SEMEL_TEST_ROUNDS=${SEMEL_TEST_ROUNDS:-10}

say() { printf '\n== %s\n' "$*"; }
usable() { [ -x "$1/initdb" ] && [ -x "$1/postgres" ]; }
version_of() { "$1/postgres" --version | sed -E 's/.*\(PostgreSQL\) ([^ ]+).*/\1/'; }
major_of() { local version; version=$(version_of "$1"); printf '%s' "${version%%.*}"; }

say 'PostgreSQL 15 to 17'
mapfile -t fetched < <(scripts/fetch-postgresql.sh "$python")

embedded=$("$python" -c 'from semel.embedded import find_binaries; print(find_binaries().version)')
here=" ${embedded%%.*} "
bins=()
for bin in "$@"; do
  usable "$bin" || { printf 'no PostgreSQL is in %s\n' "$bin" >&2; exit 2; }
  bins+=("$bin") here+="$(major_of "$bin") "
done
for bin in "${fetched[@]}" /usr/lib/postgresql/*/bin; do
  usable "$bin" || continue
  major=$(major_of "$bin")
  [[ $here == *" $major "* ]] || { bins+=("$bin"); here+="$major "; }
done

ran=() failed=() missing=()
for bin in "${bins[@]}"; do
  version=$(version_of "$bin")
  say "PostgreSQL $version ($bin)"
  # shellcheck disable=SC2086 # ARGS are words
  if SEMEL_TEST_PG_BIN=$bin "$python" -m pytest -q -n "${WORKERS:-4}" -k "$chosen" ${ARGS:-} "${contract[@]}"; then
    ran+=("$version")
  else
    failed+=("$version")
  fi
done
for major in "${wanted[@]}"; do
  [[ $here == *" $major "* ]] || missing+=("$major")
done

say 'PostgreSQL, by version'
printf '%s: every test (make test)\n' "$embedded"
printf 'the contract passed on: %s\n' "${ran[*]:-none}"
if [ ${#missing[@]} -gt 0 ]; then
  printf '\n!! NOT TESTED, for they could not be had: PostgreSQL %s\n' "${missing[*]}" >&2
fi
if [ ${#failed[@]} -gt 0 ]; then
  printf '\n!! FAILED on: PostgreSQL %s\n' "${failed[*]}" >&2
  exit 1
fi
[ ${#missing[@]} -eq 0 ] || [ -z "${CI:-}" ] || exit 1
