"""Structure of a checkout in numbers: modules per package, imports, private reach-ins, parameters, lengths.

    python benchmarks/structure.py . --label after
    python benchmarks/structure.py ../old --label before --merge timings.json

Each run adds one column to benchmarks/results/structure.json and prints the table of all columns. ``--merge`` takes a
JSON object of figures measured elsewhere: decisions per second, compile seconds, wall times of the tests. A figure that
was not measured for a column is null there.

Rules. A module is a .py file under src/recrawl other than __init__.py. Imports of the crawler are the recrawl modules
named by import statements anywhere in its file. A private reach-in is (1) an import of a name or module with a leading
underscore from another top-level package, or (2) an access to an attribute with a leading underscore, on anything but
self, cls and super(), if no class of the accessing package defines that attribute and a class of another package does,
or if the object is called scheduler, policy, execution or engine, its package is another one, and no class of the file
defines the attribute.
Methods of named tuples and dunder names do not count, nor do names of other libraries that a class here happens to use,
too (``FOREIGN``). The widest constructor is the ``__init__`` with most parameters,
without self; fields of dataclasses do not count. A function's length includes its signature and docstring. Repeated
windows are texts of six lines in a row that occur at two places or more, lines stripped, without blank lines, comments
and imports.
"""

import argparse
import ast
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "structure.json"
TUPLE_NAMES = {"_replace", "_asdict", "_fields", "_make", "_field_defaults"}
OWNERS = {"scheduler": "schedule", "policy": "schedule", "execution": "schedule", "engine": "engine"}
FOREIGN = {("_compile/jit.py", "_cache")}  # of Numba's dispatcher, which has no public way to it
CRAWLER = ("crawl/run/crawler.py", "crawl/crawler.py")
DETAILS = ("modules per package", "reach-ins", "constructors with more than six parameters")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in TUPLE_NAMES


def package_of(path: Path, root: Path) -> str:
    """The top-level package of a file; empty for modules directly under recrawl."""
    parts = path.relative_to(root).parts
    return parts[0] if len(parts) > 1 else ""


def defined(tree: ast.Module) -> set[str]:
    """Private attributes that the classes of a module define."""
    names: set[str] = set()
    for kind in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in ast.walk(kind):
            if isinstance(node, FUNCTION):
                names.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and receiver(node) == "self":
                names.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    return {name for name in names if is_private(name)}


def receiver(node: ast.Attribute) -> str:
    """Last name of the expression before the dot: ``scheduler`` of ``self.engine.scheduler._memory``."""
    value = node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id
    return value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")


def reach_ins(trees: dict[Path, ast.Module], root: Path) -> list[str]:
    """File and line of every private reach-in across top-level packages."""
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        for name in defined(tree):
            homes[name].add(package_of(path, root))
    found = []
    for path, tree in trees.items():
        mine = package_of(path, root)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("recrawl."):
                parts = (node.module or "").split(".")[1:]
                names = [*parts[1:], *(alias.name for alias in node.names)]
                foreign = parts[0] != mine and not is_private(parts[0]) and any(map(is_private, names))
            elif isinstance(node, ast.Attribute) and is_private(node.attr):
                of = receiver(node).lstrip("_")
                elsewhere = bool(homes[node.attr]) and mine not in homes[node.attr]
                owned = OWNERS.get(of, mine) != mine and node.attr not in defined(tree)
                library = (path.relative_to(root).as_posix(), node.attr) in FOREIGN
                foreign = of not in ("self", "cls", "super") and (elsewhere or owned) and not library
            else:
                continue
            if foreign:
                found.append(f"{path.relative_to(root)}:{node.lineno}")
    return found


def constructors(trees: dict[Path, ast.Module]) -> dict[str, int]:
    """Parameters of each ``__init__`` by its class, without self; of classes with one name, the widest."""
    kinds = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    made = [(kind.name, one.args) for kind in kinds for one in kind.body if getattr(one, "name", "") == "__init__"]
    return dict(sorted((name, len([*a.posonlyargs, *a.args, *a.kwonlyargs]) - 1) for name, a in made))


def imports_of(tree: ast.Module) -> int:
    froms = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    plain = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    return len({name for name in froms | plain if name.split(".")[0] == "recrawl"})


def repeated_windows(texts: list[str], height: int = 6) -> int:
    """Texts of so many lines that occur at two places or more."""
    seen: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        stripped = (line.strip() for line in text.splitlines())
        lines = [line for line in stripped if line and not line.startswith(("#", "import ", "from "))]
        seen.update(tuple(lines[k : k + height]) for k in range(len(lines) - height + 1))
    return sum(n > 1 for n in seen.values())


def lengths(values: list[int]) -> dict[str, float]:
    return {"median": float(np.median(values)), "p90": float(np.quantile(values, 0.9)), "longest": max(values)}


def figures(checkout: Path) -> dict[str, Any]:
    """All figures of a checkout."""
    root = checkout / "src" / "recrawl"
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in sources.items()}
    modules = [path.relative_to(root).parent.as_posix() for path in sources if path.name != "__init__.py"]
    per_package = Counter(name for name in modules if name != ".")
    functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, FUNCTION)]
    crawler = next(trees[root / name] for name in CRAWLER if root / name in trees)
    found, widths = reach_ins(trees, root), constructors(trees)
    return {
        "lines": sum(len(text.splitlines()) for text in sources.values()),
        "modules": len(modules),
        "modules in the largest package": max(per_package.values()),
        "packages with more than 15 modules": sum(n > 15 for n in per_package.values()),
        "imports of crawler.py": imports_of(crawler),
        "private reach-ins across packages": len(found),
        "parameters of the widest constructor": max(widths.values()),
        "lines per file": lengths([len(text.splitlines()) for text in sources.values()]),
        "lines per function": lengths([(n.end_lineno or n.lineno) - n.lineno + 1 for n in functions]),
        "repeated windows of six lines": repeated_windows(list(sources.values())),
        "modules per package": dict(sorted(per_package.items())),
        "reach-ins": found,
        "constructors with more than six parameters": {name: n for name, n in sorted(widths.items()) if n > 6},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--label", default="after")
    parser.add_argument("--merge", type=Path, help="JSON object of further figures")
    given = parser.parse_args()
    table = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    column = {**table.get(given.label, {}), **figures(given.checkout)}
    table[given.label] = column | (json.loads(given.merge.read_text()) if given.merge else {})
    names = dict.fromkeys(name for one in table.values() for name in one if name not in DETAILS)
    table = {label: {name: one.get(name) for name in (*names, *DETAILS)} for label, one in table.items()}
    RESULTS.write_text(json.dumps(table, indent=1) + "\n")
    print(f"{'':44}" + "".join(f"{label:>24}" for label in table))
    for name in names:
        cells = [one.get(name) for one in table.values()]
        texts = [" / ".join(f"{v:g}" for v in c.values()) if isinstance(c, dict) else str(c) for c in cells]
        print(f"{name:44}" + "".join(f"{text:>24}" for text in texts))


if __name__ == "__main__":
    main()
