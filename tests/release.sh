#!/usr/bin/env bash
# A release that anybody can build again: `tests/release.sh FILE` builds the program of the last commit twice, from copies at
# two places, and holds the two byte by byte against each other. FILE is then the release, without a path of this machine
# in it. Takes twice a build from nothing, about 2 GB under $TMPDIR, and the toolchain that the crates were fetched with.
set -euo pipefail
cd "$(dirname "$0")/.."
file=$(realpath -m "${1:?name the file that the release is to be}")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cargo fetch --locked
# Messages of panics name the file they come from, and that lies wherever cargo keeps its crates.
crates="${CARGO_HOME:-$HOME/.cargo}/registry/src"
remap=""
for registry in "$crates"/*/; do
  remap+=" --remap-path-prefix=${registry%/}=crates"
done

for place in one another/and/deeper; do
  git clone --quiet . "$scratch/$place"
  target="$scratch/compiled-$(basename "$place")"
  (
    cd "$scratch/$place"
    export CARGO_TARGET_DIR="$target" CARGO_INCREMENTAL=0
    export RUSTFLAGS="$remap --remap-path-prefix=$target=target"
    cargo build --locked --release --bin tui-train
  )
  cp "$target/release/tui-train" "$scratch/tui-train-$(basename "$place")"
  rm -rf "$target"
done

cmp "$scratch/tui-train-one" "$scratch/tui-train-deeper"
for path in "$crates" "$scratch" "$PWD"; do
  if grep --text --quiet --fixed-strings "$path" "$scratch/tui-train-one"; then
    echo "the release contains $path, a path of this machine" >&2
    exit 1
  fi
done
cp "$scratch/tui-train-one" "$file"
sha256sum "$file"
