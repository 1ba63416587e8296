"""The documentation cannot rot: commands, options, public names, links, targets and doctests are checked."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
import typer.main

import recrawl
from recrawl.cli import app

ROOT = Path(__file__).parents[1]
MARKDOWN = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def commands(group, before=""):
    """Every command by its words: those of a group have two."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


COMMANDS = dict(commands(typer.main.get_command(app)))
MODULES = sorted(module.name for module in pkgutil.walk_packages(recrawl.__path__, "recrawl."))
LINK = re.compile(r"\]\(([^)\s]+)\)")
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def section(text: str, heading: str) -> str:
    """The text under a heading, up to the next one of the same level."""
    level = heading.split()[0]
    start = text.index(f"\n{heading}\n")
    end = text.find(f"\n{level} ", start + 1)
    return text[start : end if end >= 0 else None]


def anchor(heading: str) -> str:
    """The anchor that a heading gets on a code host."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_option_is_described(name):
    text = section((ROOT / "docs/reference/commands.md").read_text(), f"## recrawl {name}")
    for parameter in COMMANDS[name].params:
        for option in parameter.opts:
            if option.startswith("--") and option != "--help":
                assert f"| `{option}` |" in text, f"{option} of recrawl {name}"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_described_option_exists(name):
    text = section((ROOT / "docs/reference/commands.md").read_text(), f"## recrawl {name}")
    known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert set(re.findall(r"^\| `(--[\w-]+)` \|", text, re.MULTILINE)) <= known


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_with_an_example(name):
    assert "Example" in (COMMANDS[name].epilog or "")
    assert f"recrawl {name}" in COMMANDS[name].epilog


@pytest.mark.parametrize("name", recrawl.__all__)
def test_every_public_name_is_described(name):
    assert f"\n## `{name}`\n" in (ROOT / "docs/reference/api.md").read_text()
    assert getattr(recrawl, name).__doc__


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_relative_links_resolve(path):
    for link in LINK.findall(path.read_text()):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        file, _, place = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{path.name}: {link}"
        if place:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert place in map(anchor, headings), f"{path.name}: {link}"


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_shell_blocks_name_existing_targets_commands_and_options(path):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in "".join(SHELL.findall(path.read_text())).splitlines():
        words = line.split()
        if words[:1] == ["make"]:
            assert set(words[1:]) <= targets, line
        if words[:1] == ["recrawl"]:
            name = words[1] if words[1] in COMMANDS else " ".join(words[1:3])
            known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
            assert {word for word in words if word.startswith("--")} <= known, line


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_doctests(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize(
    "path",
    [
        ROOT / name
        for name in (
            "README.md",
            "docs/reference/bandits.md",
            "docs/reference/fetching.md",
            "docs/reference/detectors.md",
            "docs/reference/engine.md",
            "docs/reference/predict.md",
            "docs/reference/events.md",
            "docs/reference/settings.md",
            "docs/reference/scheduler.md",
            "docs/reference/shop.md",
            "docs/reference/simulate.md",
            "docs/reference/store.md",
        )
    ],
    ids=lambda path: path.name,
)
def test_python_blocks_run(path):
    for block in re.findall(r"^```python\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(block, str(path), "exec"), {})


def test_the_bundled_example_is_what_its_script_makes(tmp_path):
    script = tmp_path / "make_pages.py"
    script.write_bytes((ROOT / "examples/make_pages.py").read_bytes())
    exec(compile(script.read_text(), str(script), "exec"), {"__name__": "__main__", "__file__": str(script)})
    assert (tmp_path / "pages.csv").read_bytes() == (ROOT / "examples/pages.csv").read_bytes()


def test_every_setting_of_a_crawl_is_described():
    from dataclasses import fields

    from recrawl.crawl.config.rules import Rule
    from recrawl.crawl.config.settings import Settings

    text = (ROOT / "docs/reference/settings.md").read_text()
    settings, rules = section(text, "## Settings"), section(text, "## Rules")
    for field in fields(Settings):
        assert f"| `{field.name}` |" in settings
    for field in fields(Rule):
        assert f"`{field.name}`" in rules
