"""The documentation cannot rot: commands, settings, names, failures, events, links, code and words are checked."""

import doctest
import importlib
import pkgutil
import re
import runpy
from dataclasses import fields
from pathlib import Path

import pytest
import typer.main

import recrawl
from recrawl.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MARKDOWN = sorted(
    path for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")] if "_build" not in path.relative_to(ROOT).parts
)
LINKED = [*MARKDOWN, *sorted([*ROOT.glob("benchmarks/*.md"), *ROOT.glob("experiments/**/*.md")])]
WRITTEN = [path for path in LINKED if "results" not in path.parts]  # by hand, not by a program
WIDTH = 110  # columns of prose
BANNED = re.compile(
    r"\b(heed(s|ed|ing)?|reckon(s|ed|ing)?|foretold|foretells?|anew|newcomers?|kin|\w*_told|told|stir(s|red|ring)?|"
    r"tending|onward|followers?|visits?|calm|lean(s|ed)?|mass(es)?)\b",
    re.IGNORECASE,
)
QUOTED = re.compile(r"`[^`]*`")  # the changelog names what was renamed


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
ONE_LINK = re.compile(r"[\s\-*]*\[[^]]*\]\([^)\s]+\)[.,;:]?")  # a line that cannot be wrapped
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def named(path):
    return str(path.relative_to(ROOT))


def read(name):
    return (DOCS / name).read_text()


def section(text, heading):
    """The text under a heading, up to the next one of the same level."""
    level = heading.split()[0]
    start = text.index(f"\n{heading}\n")
    end = text.find(f"\n{level} ", start + 1)
    return text[start : end if end >= 0 else None]


def anchor(heading):
    """The anchor that a heading gets on a code host and on the site."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def prose(text):
    """The lines of a page that are no code, table, picture or comment, with their numbers."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not line.startswith(("|", "![", "<!--", "    ")):
            yield number, line


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_option_is_described(name):
    text = section(read("reference/commands.md"), f"## recrawl {name}")
    for parameter in COMMANDS[name].params:
        for option in parameter.opts:
            if option.startswith("--") and option != "--help":
                assert f"| `{option}` |" in text, f"{option} of recrawl {name}"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_described_option_exists(name):
    text = section(read("reference/commands.md"), f"## recrawl {name}")
    known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert set(re.findall(r"^\| `(--[\w-]+)` \|", text, re.MULTILINE)) <= known


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_with_an_example(name):
    assert "Example" in (COMMANDS[name].epilog or "")
    assert f"recrawl {name}" in COMMANDS[name].epilog


@pytest.mark.parametrize("name", recrawl.__all__)
def test_every_public_name_is_described(name):
    assert f"\n## `{name}`\n" in read("reference/api.md")
    assert getattr(recrawl, name).__doc__


@pytest.mark.parametrize("package", runpy.run_path(str(DOCS / "list_names.py"))["PACKAGES"])
def test_every_public_name_of_a_package_is_listed(package):
    names = importlib.import_module(f"recrawl.{package}").__all__
    listed = re.findall(r"^\| `(\w+)` \|", section(read("reference/names.md"), f"## `recrawl.{package}`"), re.MULTILINE)
    assert sorted(listed) == sorted(names), "python docs/list_names.py writes the page"


def test_every_setting_of_a_crawl_is_described():
    from recrawl.crawl.config.rules import Rule
    from recrawl.crawl.config.settings import Settings

    text = read("reference/settings.md")
    settings, rules = section(text, "## Settings"), section(text, "## Rules")
    for field in fields(Settings):
        assert f"| `{field.name}` |" in settings
    for field in fields(Rule):
        assert f"`{field.name}`" in rules
    described = set(re.findall(r"^\| `(\w+)` \|", settings, re.MULTILINE))
    assert described == {field.name for field in fields(Settings)}


def test_every_failure_word_is_described_and_no_other():
    from recrawl.crawl.http.fetched import FAILURES

    table = read("reference/failures.md").split("\n## ")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == set(FAILURES)


def test_every_kind_and_field_of_an_event_is_described():
    from recrawl.store import Event

    text = read("reference/events.md")
    kinds = set(re.findall(r"^\| `(\w+)` \|", section(text, "## Kinds"), re.MULTILINE))
    assert kinds == {"new", "changed", "redirected", "gone"}
    for field in fields(Event):
        assert f"`{field.name}`" in section(text, "## Fields")


def test_every_counter_of_a_run_is_described():
    from recrawl.crawl.run.progress import Counters

    text = section(read("reference/commands.md"), "### Counters")
    for name in Counters().as_dict():
        assert f"`{name}`" in text


def test_every_log_event_is_described_and_no_other():
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    logged = re.findall(r"\bevent(?:_line)?\(\w+, [\w.]+, \"([\w.]+)\"", source)
    table = section(read("reference/commands.md"), "### Logs")
    assert set(re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE)) == set(logged)


WAY = section(read("architecture.md"), "## One page's way")
PASSED = re.findall(r"`(recrawl[\w.]*):([\w.]+)`", WAY)


@pytest.mark.parametrize(("module", "name"), PASSED)
def test_every_function_of_a_page_s_way_exists(module, name):
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)


def test_a_page_s_way_passes_every_function_once():
    assert len(PASSED) > 20
    assert len(set(PASSED)) == len(PASSED)
    shared = re.findall(r"^\| (\d+) \|", section(WAY, "### Shared"), re.MULTILINE)
    assert {number for link in re.findall(r"→ shared ([\d, ]*\d)", WAY) for number in link.split(", ")} == set(shared)


MODULE = re.compile(r"`((?:\w+/)+\w+\.py|(?:\w+/)+)`")


def test_every_module_that_the_architecture_names_exists():
    text = read("architecture.md")
    package = ROOT / "src/recrawl"
    bases = [ROOT, ROOT / "src", package, *(path for path in package.iterdir() if path.is_dir())]
    assert not [place for place in MODULE.findall(text) if not any((base / place).exists() for base in bases)]


@pytest.mark.parametrize("path", LINKED, ids=named)
def test_relative_links_resolve(path):
    for link in LINK.findall(path.read_text()):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        file, _, place = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{named(path)}: {link}"
        if place:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert place in map(anchor, headings), f"{named(path)}: {link}"


def test_every_page_is_on_the_site():
    listed = re.findall(
        r"^([\w/-]+)$", "".join(re.findall(r"```\{toctree\}(.*?)```", read("index.md"), re.DOTALL)), re.M
    )
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in MARKDOWN if DOCS in path.parents}
    assert sorted(listed) == sorted(pages - {"index"})


def exists(dotted):
    """Whether a dotted name is a module, or a name in one."""
    parts = dotted.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ImportError:
            continue
        for part in parts[k:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("path", MARKDOWN, ids=named)
def test_dotted_names_and_files_in_text_exist(path):
    text = path.read_text()
    for name in re.findall(r"`(recrawl(?:\.\w+)+)", text):
        assert name.endswith((".toml", ".db")) or exists(name), name
    for file in re.findall(r"`(?:python )?((?:tests|benchmarks|experiments|examples)/[\w./-]+)", text):
        assert (ROOT / file).exists(), file


@pytest.mark.parametrize("path", MARKDOWN, ids=named)
def test_shell_blocks_name_existing_targets_commands_and_options(path):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in "".join(SHELL.findall(path.read_text())).splitlines():
        words = line.split()
        if words[:1] == ["make"]:
            assert set(words[1:]) <= targets, line
        if words[:1] == ["recrawl"] and words[1] != "--version":
            name = words[1] if words[1] in COMMANDS else " ".join(words[1:3])
            known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
            assert {word for word in words if word.startswith("--")} <= known, line


@pytest.mark.parametrize("path", WRITTEN, ids=named)
def test_prose_is_wrapped(path):
    long = [(number, line) for number, line in prose(path.read_text()) if len(line) > WIDTH]
    assert not [(number, len(line)) for number, line in long if not ONE_LINK.fullmatch(line)]


@pytest.mark.parametrize("path", WRITTEN, ids=named)
def test_words_of_our_own_are_not_used_in_documentation(path):
    lines = path.read_text().splitlines()
    if path.name == "CHANGELOG.md":
        lines = [QUOTED.sub("", line) for line in lines]
    assert not [(number, word[0]) for number, line in enumerate(lines, 1) for word in BANNED.finditer(line)]


# Names that earlier versions saved or printed, each in the one place that knows them; words of the web's pages.
KEPT = {
    "engine/rows.py": {"told"},
    "cli/crawl/status.py": {"followers"},
    "crawl/detect/volatile.py": {"followers"},
}


def test_words_of_our_own_are_not_used_in_source():
    package, found = ROOT / "src/recrawl", []
    for path in sorted(package.rglob("*.py")):
        name = str(path.relative_to(package))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            words = {word[0].lower() for word in BANNED.finditer(line)} - KEPT.get(name, set())
            found += [(name, number, word) for word in words]
    assert not found


CLOCKS = ("engine/clocks/", "engine/beliefs/staleness_kernels.py", "engine/views/explain.py", "schedule/exact/")


def test_pace_is_the_speed_of_a_clock_and_of_nothing_else():
    package = ROOT / "src/recrawl"
    used = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"\bpaces?\b", path.read_text(), re.IGNORECASE)
    }
    assert [name for name in sorted(used) if not name.startswith(CLOCKS)] == []


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_doctests(name):
    if name.startswith("recrawl.contrib.ray."):
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'recrawl[ray]'")
    module = importlib.import_module(name)
    if ">>>" in Path(module.__file__).read_text(encoding="utf-8"):  # to look for examples takes long
        failed, _ = doctest.testmod(module)
        assert failed == 0


WITH_CODE = [path for path in MARKDOWN if PYTHON.search(path.read_text())]


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_CODE, ids=named)
def test_python_blocks_run(path):
    names, parser = {}, doctest.DocTestParser()
    for number, block in enumerate(PYTHON.findall(path.read_text())):
        if ">>>" not in block:
            exec(compile(block, f"{named(path)}, block {number}", "exec"), {})
            continue
        test = parser.get_doctest(block, names, f"{named(path)}, block {number}", str(path), 0)
        runner = doctest.DocTestRunner()
        runner.run(test, clear_globs=False)
        names = test.globs
        assert runner.failures == 0


def test_the_bundled_example_is_what_its_script_makes(tmp_path):
    script = tmp_path / "make_pages.py"
    script.write_bytes((ROOT / "examples/make_pages.py").read_bytes())
    exec(compile(script.read_text(), str(script), "exec"), {"__name__": "__main__", "__file__": str(script)})
    assert (tmp_path / "pages.csv").read_bytes() == (ROOT / "examples/pages.csv").read_bytes()
