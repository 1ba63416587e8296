"""Every package's public names: the lazy table, the block for type checkers and what can be imported agree."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import recrawl

ROOT = Path(recrawl.__file__).parent
PACKAGES = [
    "recrawl" + "".join(f".{part}" for part in file.parent.relative_to(ROOT).parts)
    for file in sorted(ROOT.rglob("__init__.py"))
    if "attach(" in file.read_text()
]


def typed_names(package) -> dict[str, str]:
    """Name -> module, as the TYPE_CHECKING block says."""
    tree = ast.parse(Path(package.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.asname: node.module for node in block.body for alias in node.names}


@pytest.mark.parametrize("name", PACKAGES)
def test_lazy_names_are_those_that_type_checkers_see(name):
    package = import_module(name)
    typed = typed_names(package)
    assert sorted(typed) == sorted(package.__all__) == dir(package)
    if name == "recrawl.contrib.ray":
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'recrawl[ray]'")
    for public, home in typed.items():
        assert getattr(package, public) is getattr(import_module(home), public)


@pytest.mark.parametrize("name", PACKAGES)
def test_no_module_hides_a_public_name(name):
    package = import_module(name)
    folder = Path(package.__file__).parent
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert not modules & set(package.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'recrawl' has no attribute 'nothing'"):
        recrawl.nothing  # noqa: B018


REPOSITORY = Path(__file__).parents[1]
TEXTS = sorted([REPOSITORY / "README.md", *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("examples/**/*.py")])


def imports_in(path: Path) -> list[str]:
    """Statements of a text or program that import from recrawl's packages."""
    return re.findall(r"^[ >.]*(from recrawl[\w.]* import (?:\([^)]*\)|.+))", path.read_text(), re.MULTILINE)


def test_there_are_imports_in_texts():
    assert sum(len(imports_in(path)) for path in TEXTS) > 30


@pytest.mark.parametrize("path", [path for path in TEXTS if imports_in(path)], ids=lambda path: path.name)
def test_texts_and_examples_import_public_names(path):
    """From a package's `__init__`, never past it from one of its modules."""
    for statement in imports_in(path):
        node = ast.parse(statement).body[0]
        package = import_module(node.module)
        assert hasattr(package, "__path__"), f"{node.module} is a module: import from its package"
        names = {alias.name for alias in node.names}
        assert names <= set(package.__all__), f"{node.module} does not export {names - set(package.__all__)}"
