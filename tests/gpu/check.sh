#!/usr/bin/env bash
# Checks tui-train on a machine with a CUDA GPU and PyTorch, without Rust and without network, and prints one JSON.
#
# Where it was built (libtorch of the same version as that machine's PyTorch):
#     cargo build --release --features libtorch --bin tui-train-libtorch
#     strip -o tui-train-libtorch target/release/tui-train-libtorch && xz -T0 tui-train-libtorch   # about 5 MB
# There, with that file and the folder tests of this repository:
#     tests/gpu/check.sh tui-train-libtorch.xz > check.json
#
# It takes five minutes at most: what hangs is killed, and the JSON is written all the same. It names the version of that
# PyTorch, too. A build for libtorch 2.11, which is known to compile, is made with LIBTORCH_BYPASS_VERSION_CHECK=1 in the
# environment of `cargo build`, and is checked on a machine with PyTorch 2.11; the check itself needs no such variable.
#
# The libraries are those of the PyTorch that $PYTHON (python3) imports. CHECK_DEVICE names another device than
# libtorch-cuda:0; on libtorch-cpu the check runs small, to try itself.
set -euo pipefail

packed=${1:?usage: tests/gpu/check.sh PROGRAM[.xz|.gz]}
python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

program="$work/tui-train-libtorch"
case "$packed" in
  *.xz) "$python" -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), open(sys.argv[2], "wb"))' "$packed" "$program" ;;
  *.gz) gzip -dc "$packed" > "$program" ;;
  *) cp "$packed" "$program" ;;
esac
chmod +x "$program"

# PyTorch's wheels keep CUDA's libraries beside it, in folders of their own.
LD_LIBRARY_PATH=$("$python" - <<'PY'
import glob, os, torch
lib = os.path.join(os.path.dirname(torch.__file__), "lib")
print(":".join([lib, *sorted(glob.glob(os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia", "*", "lib")))]))
PY
)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH TUI_TRAIN_HOME="$work/state" TUI_TRAIN_LIBTORCH="$program"
"$python" "$here/check.py" --program "$program" --device "${CHECK_DEVICE:-libtorch-cuda:0}"
