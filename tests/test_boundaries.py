"""A leading underscore is respected: no package uses a private name of another one. No constructor is wide."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

import recrawl

SOURCE = Path(recrawl.__file__).parent
NAMEDTUPLE = {"_replace", "_asdict", "_fields", "_make"}
FOREIGN = {  # private names of other libraries that there is no public way to
    ("_compile/compiling.py", "_cache"),
    ("_system/forks.py", "_exit"),
    ("_compile/jit.py", "_cache"),
    ("_compile/jit.py", "_exit"),
    ("_compile/parts.py", "_compile_core"),
    ("_compile/parts.py", "_get_module_for_linking"),
    ("_compile/parts.py", "_library_class"),
    ("_compile/parts.py", "_linking_libraries"),
    ("_compile/parts.py", "_module_pass_manager"),
    ("_compile/parts.py", "_optimize_final_module"),
    ("_compile/parts.py", "_reload_init"),
    ("_system/processes.py", "_exit"),
    ("_system/processes.py", "_processes"),
    ("crawl/http/fetcher.py", "_retry_connection"),
    ("crawl/http/fetcher.py", "_factory"),
    ("_compile/packed.py", "_getvalue"),
    ("schedule/exact/kernels/state/view.py", "_getvalue"),
}


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMEDTUPLE


def owned(nodes: Iterable[ast.AST]) -> set[str]:
    """Private names that classes of a module define: methods, and attributes of self and cls."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.add(part.name)
                targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and of_itself(node):
            found.add(node.attr)
    return {name for name in found if private(name)}


def of_itself(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def reach_ins(trees: dict[Path, list[ast.AST]]) -> list[str]:
    """Where a module uses a private attribute that no class of its own folder defines."""
    owners = defaultdict(set)
    for path, tree in trees.items():
        owners[path.parent] |= owned(tree)
    found = []
    for path, tree in trees.items():
        name = path.relative_to(SOURCE).as_posix()
        for node in tree:
            if not isinstance(node, ast.Attribute) or not private(node.attr) or of_itself(node):
                continue
            if node.attr in owners[path.parent] or (name, node.attr) in FOREIGN:
                continue
            found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    return found


def private_imports(trees: dict[Path, list[ast.AST]]) -> list[str]:
    """Where a module imports a private name of a module outside its own folder."""
    found = []
    for path, tree in trees.items():
        package = ".".join(["recrawl", *path.relative_to(SOURCE).parent.parts])
        for node in tree:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("recrawl"):
                outside = (node.module or "").rpartition(".")[0] != package
                found += [
                    f"{path}: {a.name}" for a in node.names if private(a.name) and outside and node.module != "recrawl"
                ]
    return found


@pytest.mark.slow
def test_no_private_name_crosses_a_package():
    trees = {path: parsed(path) for path in sorted(SOURCE.rglob("*.py"))}
    assert reach_ins(trees) == []
    assert private_imports(trees) == []


def parsed(path: Path) -> list[ast.AST]:
    """All nodes of a module that these tests look at."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in nodes if isinstance(node, ast.ClassDef | ast.Attribute | ast.ImportFrom)]


def test_a_reach_in_would_be_found():
    tree = ast.parse("class A:\n    def _own(self):\n        self._mine = 1\n        return other._theirs\n")
    assert owned(ast.walk(tree)) == {"_own", "_mine"}


def constructors(tree: ast.Module) -> dict[str, tuple[list[str], bool]]:
    """Parameters of the ``__init__`` of each class, and whether they are the columns (``__slots__``) of a record."""
    found = {}
    for kind in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for part in kind.body:
            if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                given = [*part.args.posonlyargs, *part.args.args[1:], *part.args.kwonlyargs]
                given += [one for one in (part.args.vararg, part.args.kwarg) if one is not None]
                names = [one.arg for one in given]
                found[kind.name] = names, sorted(names) == sorted(slots(kind))
    return found


def slots(kind: ast.ClassDef) -> list[str]:
    values = [
        part.value
        for part in kind.body
        if isinstance(part, ast.Assign) and "__slots__" in map(ast.unparse, part.targets)
    ]
    return list(ast.literal_eval(values[0])) if values else []


def test_no_constructor_has_more_than_six_parameters():
    """A record of columns is itself the options object (docs/architecture.md); there is one."""
    made = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for name, (given, is_record) in constructors(ast.parse(path.read_text(encoding="utf-8"))).items():
            made[f"{path.relative_to(SOURCE).as_posix()}: {name}"] = len(given), is_record
    wide = {name for name, (n, _) in made.items() if n > 6}
    assert len(made) > 100
    assert wide == {"model/pages.py: Pages"}
    assert all(made[name][1] for name in wide)


def test_a_wide_constructor_would_be_found():
    text = "class A:\n    def __init__(self, a, b, c, *d, e, f=1, **g): pass\n"
    assert constructors(ast.parse(text)) == {"A": (["a", "b", "c", "e", "f", "d", "g"], False)}
    text = "class B:\n    __slots__ = ('b', 'a')\n    def __init__(self, a, b): pass\n"
    assert constructors(ast.parse(text)) == {"B": (["a", "b"], True)}


def test_packages_and_the_crawler_stay_small():
    modules = Counter(path.parent for path in SOURCE.rglob("*.py") if path.name != "__init__.py")
    large = {folder.relative_to(SOURCE).as_posix() for folder, n in modules.items() if n > 15}
    assert large == set(), "about fifteen modules; a sub-package is missing"
    tree = ast.parse((SOURCE / "crawl/run/crawler.py").read_text(encoding="utf-8"))
    froms = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert sum(name.startswith("recrawl") for name in froms) <= 12
