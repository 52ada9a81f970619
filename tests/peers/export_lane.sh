#!/usr/bin/env bash
# Exports a run and has each format read by the program that people read it with: TensorBoard, pandas, an XML parser,
# and a browser where there is one.
# Needs Python and its registry once. Run: tests/peers/export_lane.sh TUI_TRAIN
set -euo pipefail
program=$(realpath "${1:?the program to test, such as target/debug/tui-train}")
here=$(cd "$(dirname "$0")" && pwd)
cache="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tui-train"
venv="$cache/venv-export"
python="$venv/bin/python"

works() { "$python" -c 'import pandas, tensorboard' 2>/dev/null; }
install() {
  mkdir -p "$cache" && rm -rf "$venv"
  python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "tensorboard==2.21.0" "pandas>=2"
}
if ! works && ! { install && works; }; then
  echo "NOT TESTED: TensorBoard and pandas cannot be installed here, so no export was read by them"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export TUI_TRAIN_HOME="$work/state" TUI_TRAIN_TRAIN_DEVICE=flex
set=(--set train.seq_len=16 --set train.micro_batch=2 --set model.num_hidden_layers=1 --set train.validate_every=10)
set+=(--set log.state_every=10 --set checkpoint.every_updates=20 --set log.tensorboard=true)
"$program" run --headless --name first "${set[@]}" --set train.max_updates=40 >/dev/null
# One that went on, so that a record with a seam is read, too.
"$program" resume first --headless --set train.max_updates=60 >/dev/null
run=$(echo "$TUI_TRAIN_HOME"/runs/*-first)
"$program" note first "the one with a seam"

echo "== TensorBoard: exported, and grown with the run"
"$program" export first --format tensorboard -o board
"$python" "$here/check_tensorboard.py" board "$run/events.jsonl" first "the one with a seam" 2>err.txt || { cat err.txt; exit 1; }
"$python" "$here/check_tensorboard.py" "$run/tensorboard" "$run/events.jsonl" 2>err.txt || { cat err.txt; exit 1; }
echo "== pandas"
"$program" export first --format csv -o run.csv
"$program" export first --format jsonl -o run.jsonl
"$python" "$here/check_rows.py" run.csv run.jsonl "$run/events.jsonl"
echo "== XML and HTML parsers"
"$program" export first --format svg -o run.svg
"$program" export first --format html -o run.html
"$python" - <<'PYTHON'
import html.parser
import pathlib
import xml.etree.ElementTree as tree

root = tree.parse("run.svg").getroot()
assert root.tag == "{http://www.w3.org/2000/svg}svg", root.tag
texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
assert "Loss" in texts and "validation" in texts and "Memory" in texts, texts


class Balance(html.parser.HTMLParser):
    """Every tag that opens closes, in order."""

    open: list[str] = []

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "link", "img", "iframe"), tag
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


page = Balance()
page.feed(pathlib.Path("run.html").read_text())
page.close()
assert not page.open, page.open
print(f"{len(texts)} texts in the picture; every tag of the page closes")
PYTHON

echo "== a browser"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
  echo "NOT TESTED: there is no Chromium here, so no browser drew the page"
  exit 0
fi
draw() {
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,1600 \
    --user-data-dir="$work/browser" "$@" 2>/dev/null
}
# It may lack a library or a permission of the machine: that it ends otherwise says nothing of the page.
if ! { draw --screenshot="$work/blank.png" about:blank >/dev/null &&
  draw --screenshot="$work/page.png" "file://$work/run.html" >/dev/null &&
  draw --dump-dom "file://$work/run.html" >dom.html; }; then
  echo "NOT TESTED: $browser does not work here, so no browser drew the page"
  exit 0
fi
"$python" - <<'PYTHON'
import pathlib

drawn, blank = (pathlib.Path(name).stat().st_size for name in ("page.png", "blank.png"))
assert drawn > 4 * blank, (drawn, blank)
# What the browser has made of it: a table that does not nest, or a picture that breaks off, would be moved about.
page, dom = pathlib.Path("run.html").read_text(), pathlib.Path("dom.html").read_text()
for tag in ("<svg", "<path", "<table", "<tr", "<h2"):
    assert page.count(tag) == dom.count(tag) > 0, (tag, page.count(tag), dom.count(tag))
print(f"the page is drawn: {drawn} bytes of picture, {blank} of a blank one")
PYTHON
