"""Settings of the documentation site: Sphinx with MyST and Furo (`make docs`)."""

import os
import re
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent

project = "recrawl"
author = "the recrawl authors"
copyright = author
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["version"]
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
highlight_language = "none"
html_theme = "furo"
html_title = f"recrawl {release}"
html_copy_source = False
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def name_files_outside(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace links to files outside docs/ by their paths: the site does not hold them, the repository does."""
    folder = os.path.dirname(page)

    def replaced(link: re.Match[str]) -> str:
        target = os.path.normpath(os.path.join("docs", folder, link[2]))
        if "://" in link[2] or target == "docs" or target.startswith("docs/"):
            return link[0]
        text = link[1].strip("`")
        return f"`{target}`" if text == target else f"{link[1]} (`{target}`)"

    source[0] = LINK.sub(replaced, source[0])


def setup(app: Sphinx) -> None:
    """Connect the rewriting of links."""
    app.connect("source-read", name_files_outside)
