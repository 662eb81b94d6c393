#!/usr/bin/env bash
# Build the gem: the statements, and what replay loads, are copied beside the code first, since a gem cannot read the Python
# package's.
#
#   ruby/build.sh [FOLDER]     write semel-VERSION.gem there (default: dist)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=$(mkdir -p "${1:-$here/../dist}" && cd "${1:-$here/../dist}" && pwd)
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

cp -R "$here/lib" "$here/semel.gemspec" "$here/README.md" "$here/../LICENSE" "$made"
mkdir -p "$made/lib/semel/sql"
cp -R "$here/../src/semel/sql/guard" "$made/lib/semel/sql/guard"
cp "$here/../src/semel/replay/faults/ruby/semel/faults.rb" "$made/lib/semel/faults.rb"
cd "$made"
gem build --quiet semel.gemspec --output "$folder/semel-$(ruby -r ./lib/semel/version -e 'print Semel::VERSION').gem"
