"""List the public names of every package in docs/reference/names.md, each with the first sentence of its docstring."""

import importlib
import inspect
import re
from pathlib import Path

PAGE = Path(__file__).parent / "reference/names.md"
PACKAGES = [
    "model",
    "solver",
    "estimate",
    "schedule",
    "engine",
    "store",
    "crawl",
    "simulate",
    "simulate.compare",
    "simulate.shop",
    "desk",
    "client",
    "cluster",
    "demo",
    "reproduce",
    "serve",
    "contrib.browser",
    "contrib.scrapy",
    "contrib.urlfrontier",
]
HEAD = """# Names of the packages

Public names of each package, imported from the package itself (`from recrawl.crawl import Crawler`) and
loaded on first use. Names of `recrawl` itself are described in [public names](api.md).
`python docs/list_names.py` writes this page from the first sentence of each docstring.
"""


def described(found: object) -> str:
    """The first sentence of a docstring, for a cell of a table."""
    if not (inspect.isclass(found) or callable(found)):
        return f"constant, {type(found).__name__}"
    text = re.sub(r"\s+", " ", inspect.getdoc(found) or "").strip()
    sentence = re.match(r"(.*?(?<! al)\.)(\s|$)", text)
    words = (sentence[1] if sentence else text).rstrip(".:;")
    return words.replace("``", "`").replace("|", "\\|")


def tables() -> str:
    """A section for each package."""
    parts = [HEAD]
    for package in PACKAGES:
        module = importlib.import_module(f"recrawl.{package}")
        rows = [f"| `{name}` | {described(getattr(module, name))} |" for name in sorted(module.__all__, key=str.lower)]
        parts.append("\n".join([f"\n## `recrawl.{package}`\n", "| name | what it is |", "|---|---|", *rows, ""]))
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(tables())
