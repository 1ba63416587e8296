"""Which results are older than the code they rest on: `python benchmarks/made_with.py`, or `make results`.

`made_with.json` beside this file names, for each committed result, the scripts that made it, the commit, and a digest
of the code that they rest on, a package each: the modules that they import, directly or not. Comments and docstrings
do not count. After a benchmark or an experiment has run, write down what its results were made with:

    python benchmarks/made_with.py --write benchmarks/results/memory.json

A result that is new names its scripts: `--write experiments/new/results.json --by experiments/new/run.py`.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LEDGER = Path(__file__).with_name("made_with.json")
_PLACES = ("benchmarks/results/*.json", "experiments/**/*.json")


def results(root: Path = ROOT) -> list[str]:
    """Every committed result, by its path from the root; what a figure is expected to show is not one."""
    found = {path for place in _PLACES for path in root.glob(place) if path.name != "expected.json"}
    return sorted(path.relative_to(root).as_posix() for path in found)


def ledger(file: Path = LEDGER) -> dict[str, dict[str, Any]]:
    return dict(json.loads(file.read_text())) if file.exists() else {}


def unstamped(root: Path, kept: dict[str, dict[str, Any]]) -> list[str]:
    """Results that were written since, or never stamped, and entries whose result is gone."""
    found = results(root)
    changed = [name for name in found if kept.get(name, {}).get("result") != _digest((root / name).read_bytes())]
    return changed + sorted(set(kept) - set(found))


def older(root: Path, kept: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """The results that are older than their code, each with the packages and scripts that are others now."""
    found = {}
    for name, entry in kept.items():
        now = code(root, entry["by"])
        parts = sorted(part for part in now.keys() | entry["code"].keys() if now.get(part) != entry["code"].get(part))
        if parts:
            found[name] = parts
    return found


def stamp(root: Path, result: str, by: list[str], commit: str) -> dict[str, Any]:
    """What a result was made with, if it was made with the code as it is now."""
    return {"result": _digest((root / result).read_bytes()), "by": by, "commit": commit, "code": code(root, by)}


def code(root: Path, by: Iterable[str]) -> dict[str, str]:
    """A digest of each package, and of each script, that scripts rest on."""
    parts: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(_closure(root, [root / name for name in by])):
        name = path.relative_to(root).as_posix()
        place = name.split("/")
        part = ".".join(place[1:3]).removesuffix(".py") if place[0] == "src" else name
        parts.setdefault(part, []).append((name, _meaning(path.read_text(encoding="utf-8"))))
    return {part: _digest(repr(found).encode()) for part, found in parts.items()}


def _closure(root: Path, scripts: list[Path]) -> set[Path]:
    closure: set[Path] = set()
    todo = [path for path in scripts if path.exists()]
    while todo:
        path = todo.pop()
        if path not in closure:
            closure.add(path)
            todo += _imported(root, path)
    return closure


@cache
def _imported(root: Path, path: Path) -> frozenset[Path]:
    """The files of ours that a file imports, also within functions; a package's public names lead to their modules."""
    found = set()
    for module, name in _imports(path.read_text(encoding="utf-8")):
        whole = _file(root, path, f"{module}.{name}" if module else name)
        found.add(whole or _public(root, path, module, name) or _file(root, path, module))
    return frozenset(file for file in found if file)


def _file(root: Path, path: Path, module: str) -> Path | None:
    """The file of a module: of the package, or beside the script that imports it."""
    folder = root / "src" if module.split(".")[0] == "recrawl" else path.parent
    file = folder.joinpath(*module.split(".")).with_suffix(".py")
    return file if module and file.is_file() else None


def _public(root: Path, path: Path, package: str, name: str) -> Path | None:
    """The module that a package's public name comes from, which its `__init__` says to type checkers."""
    init = root.joinpath("src", *package.split("."), "__init__.py")
    if not package.startswith("recrawl") or not init.is_file():
        return None
    for module, public in _imports(init.read_text(encoding="utf-8"), types=True):
        if public == name and module != package:
            return _file(root, path, module)
    return None


@cache
def _imports(text: str, types: bool = False) -> list[tuple[str, str]]:
    """Module and name of each import; of those for type checkers alone only if asked for."""
    found: list[tuple[str, str]] = []
    todo: list[ast.AST] = [ast.parse(text)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found += [("", name.name) for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, name.name) for name in node.names]
        if types or not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            todo += ast.iter_child_nodes(node)
    return found


@cache
def _meaning(text: str) -> str:
    """A digest of a file's code, without comments, docstrings and layout."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body[0] = ast.Pass()
    return _digest(ast.dump(tree).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _commit(root: Path) -> str:
    """The commit that is checked out, with a + where files of it were changed since."""
    at = subprocess.run(["git", "describe", "--always", "--dirty=+"], cwd=root, capture_output=True, text=True)
    return at.stdout.strip() or "unknown"


def _write(kept: dict[str, dict[str, Any]]) -> None:
    lines = [f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in sorted(kept)]
    LEDGER.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main(given: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(description="Which results are older than the code they rest on.")
    options.add_argument("--write", nargs="+", metavar="RESULT", help="these results were made with the code as it is")
    options.add_argument(
        "--by", nargs="+", metavar="SCRIPT", help="the scripts that made them (known results: as before)"
    )
    asked = options.parse_args(given)
    kept = ledger()
    for path in asked.write or []:
        name = Path(path).resolve().relative_to(ROOT).as_posix()
        by = asked.by or kept.get(name, {}).get("by")
        if not by:
            raise SystemExit(f"{name} is new: name the scripts that made it with --by")
        kept[name] = stamp(ROOT, name, by, _commit(ROOT))
    if asked.write:
        _write(kept)
        return
    found, loose = older(ROOT, kept), unstamped(ROOT, kept)
    for name, parts in found.items():
        print(f"{name}, made with {kept[name]['commit']}: others now are {', '.join(parts)}")
    for name in loose:
        print(f"{name}: not stamped as it is (--write)")
    print(f"{len(found)} of {len(kept)} results are older than the code they rest on, {len(loose)} are not stamped")


if __name__ == "__main__":
    sys.exit(main())
