#!/usr/bin/env bash
# Make a root folder for each further release of Debian that has other versions of Ruby, Sidekiq and Rails than this machine,
# so that the gem is tested on them. As root; a folder that is there already is left as it is.
#
#   scripts/ruby-chroots.sh FOLDER [RELEASE …]     FOLDER/trixie: Sidekiq 7.3, Rails 7.2; FOLDER/forky: Sidekiq 8.1
#
# Packages come from the mirror that this machine's apt uses. Each takes about a minute and 450 MB.
set -euo pipefail

folder=${1:?which folder}
shift
releases=("${@:-trixie}")
[ $# -gt 0 ] || releases=(trixie forky)
packages=ruby-sidekiq,ruby-pg,ruby-mysql2,ruby-sqlite3,ruby-activerecord,ruby-rspec

mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -1)
[ -n "$mirror" ] || mirror=$(awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) { print $i; exit } }' /etc/apt/sources.list 2>/dev/null)
[ -n "$mirror" ] || { echo "ruby-chroots: no mirror of Debian is known to apt" >&2; exit 1; }

if ! command -v debootstrap >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
fi

make_root() {
  local release=$1 target=$2 script=/usr/share/debootstrap/scripts/$1
  [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid  # a release that this debootstrap does not know by name
  rm -rf "$target.new"
  # in a mount namespace of its own: what it mounts there is gone with it, however it ends
  unshare --mount debootstrap --variant=minbase "$release" "$target.new" "$mirror" "$script" >"$target.log" 2>&1
  chroot "$target.new" apt-get update -qq >>"$target.log" 2>&1
  chroot "$target.new" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends ${packages//,/ } >>"$target.log" 2>&1
  rm -rf "$target.new"/var/cache/apt/archives/*.deb "$target.new"/var/lib/apt/lists/* "$target.new"/usr/share/doc
  mv "$target.new" "$target"  # the last step: a folder of this name is whole
}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
running=()
for release in "${releases[@]}"; do
  [ -d "$folder/$release" ] && continue
  {
    make_root "$release" "$folder/$release" || { tail -5 "$folder/$release.log" >&2; exit 1; }
    printf 'ruby-chroots: %s made in %d s\n' "$folder/$release" "$SECONDS"
  } &
  running+=($!)
done
failed=0
for each in "${running[@]}"; do wait "$each" || failed=1; done
exit $failed
