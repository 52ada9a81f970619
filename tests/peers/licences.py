# Needs Python 3.11 or later and cargo; no network once the dependencies have been fetched.
# Run: python3 tests/peers/licences.py
"""Whether every dependency that is built by default or for Parquet has a licence that `deny.toml` allows: exit code 0 if so, 1 if not.

Licences are SPDX expressions as the packages' manifests state them; `/` is an older way to write `OR`. A package with a
file and no expression is told, unless `deny.toml` has a clarification of that name.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def satisfied(expression: str, allowed: set[str]) -> bool:
    """Whether some choice of the expression's alternatives is allowed throughout."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    place = 0

    def either() -> bool:
        nonlocal place
        found = both()
        while place < len(words) and words[place] == "OR":
            place += 1
            found = both() or found
        return found

    def both() -> bool:
        nonlocal place
        found = one()
        while place < len(words) and words[place] == "AND":
            place += 1
            found = one() and found
        return found

    def one() -> bool:
        nonlocal place
        word = words[place]
        place += 1
        if word == "(":
            found = either()
            place += 1
            return found
        if words[place : place + 1] == ["WITH"]:
            word = f"{word} WITH {words[place + 1]}"
            place += 2
        return word in allowed

    return either()


def built() -> list[dict]:
    """The packages that a build with the reader of Parquet tables has, on any platform, tests left out."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version", "1", "--locked", "--features", "parquet"]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    waiting, seen = [found["resolve"]["root"]], set()
    while waiting:
        package = waiting.pop()
        if package in seen:
            continue
        seen.add(package)
        for dependency in nodes[package]["deps"]:
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return [package for package in found["packages"] if package["id"] in seen]


def main() -> int:
    """Checks the packages, and prints those that are not allowed."""
    deny = tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]
    allowed = set(deny["allow"])
    clarified = {entry["name"]: entry["expression"] for entry in deny.get("clarify", [])}
    packages = built()
    refused = []
    for package in packages:
        expression = clarified.get(package["name"]) or package["license"] or ""
        if not expression or not satisfied(expression, allowed):
            refused.append(f"{package['name']} {package['version']}: {expression or package['license_file']}")
    print(f"{len(packages)} packages, {len(refused)} with a licence that is not allowed")
    for line in refused:
        print(line, file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
