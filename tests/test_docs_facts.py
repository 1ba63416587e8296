"""Facts in the documentation are those of the code: defaults, figures of results, settings, options, pictures."""

import json
import re
import tomllib
from dataclasses import MISSING, fields

import numpy as np
import pytest
import typer.main
from test_docs import COMMANDS, DOCS, LINKED, MARKDOWN, ROOT, SHELL, named, prose, read, section

from recrawl.cli import app
from recrawl.crawl.config.settings import Settings
from recrawl.engine.beliefs import beliefs
from recrawl.engine.settings import Settings as EngineSettings

# --- defaults ---------------------------------------------------------------------------------------------------------

ROW = re.compile(r"^\| `([\w-]+)` \| (.*?) \|(?: (.*) \|)?$", re.MULTILINE)
EMPTY = ("none", "always", "recrawl's own", "as before", "as the database")  # settings without a value


def described(value):
    """A default as documentation writes it."""
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("field", fields(Settings), ids=lambda field: field.name)
def test_the_default_of_a_setting_is_the_one_described(field):
    rows = {name: default for name, default, _ in ROW.findall(section(read("reference/settings.md"), "## Settings"))}
    said = rows[field.name]
    if field.default in ("", (), MISSING, None):
        assert said.startswith(EMPTY), said
    else:
        assert said.strip("`") == described(field.default)


DEFAULT = re.compile(
    r"\bdefault:? (?:`([^`]+)`|(yes|no|\d[\d.]*\d|\d)\b)|`([^`]+)` \(the default\)|`([^`]+)` \(default\)"
)


def stated(text):
    """The default that a description gives, or None."""
    found = DEFAULT.search(text)
    return None if found is None else next(value for value in found.groups() if value is not None)


def test_the_defaults_of_the_engine_are_those_described():
    defaults = {field.name: field.default for field in fields(EngineSettings)}
    rows = {name: stated(text) for name, text, _ in ROW.findall(section(read("reference/engine.md"), "## Settings"))}
    said = {name: value for name, value in rows.items() if value is not None and name in defaults}
    assert len(said) >= 6
    for name, value in said.items():
        words = {True: "yes", False: "no"}
        default = defaults[name]
        text = default if isinstance(default, str) else f"{default:g}"
        expected = words[default] if isinstance(default, bool) else text
        assert value == expected, name


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_defaults_of_options_are_those_described(name):
    with_settings = any(parameter.name == "config" for parameter in COMMANDS[name].params)
    settings = {field.name: field.default for field in fields(Settings)} if with_settings else {}
    text = section(read("reference/commands.md"), f"## recrawl {name}")
    rows = dict(re.findall(r"^\| `(--[\w-]+)` \| (.*) \|$", text, re.MULTILINE))
    for parameter in COMMANDS[name].params:
        for option in parameter.opts:
            said = stated(rows.get(option, ""))
            default = settings.get(parameter.name) if parameter.default is None else parameter.default
            if said is None or default is None:
                continue
            number = isinstance(default, int | float) and not isinstance(default, bool)
            same = float(said) == default if number else said == described(default)
            assert same, f"recrawl {name} {option}: described as {said}, is {default}"


# --- words ------------------------------------------------------------------------------------------------------------

LATER = re.compile(
    r"\b(coming|planned|upcoming|todo|not yet|do(es)? not \w+ yet|in a later version|will be added)\b", re.IGNORECASE
)
STANDS = {  # what may be said, and why
    "These packages do not exist yet.": "their layers are in the contract of imports already",
    "not yet read signals from sitemaps": "the live crawler leaves signals to programs of the user",
    "Crawls planned on them": "no promise: plans of crawls",
}


@pytest.mark.parametrize("path", MARKDOWN, ids=named)
def test_nothing_is_promised_for_later(path):
    lines = [line for _, line in prose(path.read_text()) if LATER.search(line)]
    assert path.name == "CHANGELOG.md" or not [line for line in lines if not any(known in line for known in STANDS)]


# --- names ------------------------------------------------------------------------------------------------------------

ALL = [typer.main.get_command(app), *COMMANDS.values()]
OPTIONS = {option for command in ALL for one in command.params for option in one.opts} | {"--help"}


@pytest.mark.parametrize("path", MARKDOWN, ids=named)
def test_commands_and_options_in_text_exist(path):
    if path.name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        return
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`([^`\n]+)`", text):
        words = code.split()
        if words[0] == "recrawl" and words[1:] and re.fullmatch(r"[a-z][a-z-]*", words[1]):
            groups = {name.split()[0] for name in COMMANDS}
            assert words[1] in groups, code
        if words[0] in ("python", "pip", "make", "pg_dump"):
            continue
        assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", code)) <= OPTIONS, code


TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITH_SETTINGS = [path for path in MARKDOWN if TOML.search(path.read_text())]


@pytest.mark.parametrize("path", WITH_SETTINGS, ids=named)
def test_settings_in_examples_are_accepted(path):
    for block in TOML.findall(path.read_text()):
        given = tomllib.loads(block)
        Settings(**{**given, "rule": tuple(given.get("rule", ()))})


@pytest.mark.parametrize("path", LINKED, ids=named)
def test_scripts_in_shell_blocks_exist(path):
    for script in re.findall(
        r"python3? ((?:benchmarks|experiments|examples|docs)/[\w/.-]+)", "".join(SHELL.findall(path.read_text()))
    ):
        assert (ROOT / script).is_file(), script


# --- figures ----------------------------------------------------------------------------------------------------------

TRACES = {"homebrew-cask, last year": "homebrew-cask", "homebrew-cask, from April 2020": "homebrew-cask-2020"}
NOT_RIVALS = ("learned", "known", "trailing", "uniform")


def measured(budget):
    """Mean staleness by trace and policy at a budget, as committed."""
    found = {}
    for name, cell in json.loads((ROOT / "experiments/learner/traces.json").read_text())["cells"].items():
        trace, share, policy = name.split(" ")
        if float(share) == budget:
            found.setdefault(trace, {})[policy] = float(np.mean(list(cell["staleness"].values())))
    return found


def best_rival(stale):
    return min((value, policy) for policy, value in stale.items() if policy not in NOT_RIVALS)


def test_the_results_in_the_readme_are_the_committed_ones():
    results, text = measured(0.05), (ROOT / "README.md").read_text()
    rows = re.findall(
        r"^\| ([\w-]+(?:, [\w ]+)?) \([\d,]+\) \| \*\*([\d.]+)\*\* \| (\w+) ([\d.]+) \| ([\d.]+) \|$", text, re.M
    )
    assert len(rows) == len(results) == 7
    for name, learned, rival, least, known in rows:
        stale = results[TRACES.get(name, name)]
        value, policy = best_rival(stale)
        assert (learned, known, least) == tuple(f"{one:.4f}" for one in (stale["learned"], stale["known"], value))
        assert rival.lower() == policy.partition(":")[0]


@pytest.mark.parametrize("budget", [0.02, 0.05])
def test_the_readme_says_where_rivals_are_beaten(budget):
    for stale in measured(budget).values():
        assert stale["learned"] < best_rival(stale)[0]
    said = (
        "With 0.02 and with 0.05 crawls per page and day, recrawl's copies are less stale than those of the best rival"
    )
    assert f"{said} on every data set." in " ".join((ROOT / "README.md").read_text().split())


NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
UNITS = (1.0, 1e3, 1e6, 1e-3, 1e-6, 100.0, 2.0**-20)  # between a result and its text
COMPUTED = {"126", "267"}  # bytes of scheduler and beliefs together
PARTS = re.split(r"^## ", read("performance.md"), flags=re.MULTILINE)[1:]


def numbers(found):
    """All numbers of a result, and the lengths and means of its lists."""
    if isinstance(found, dict):
        for value in found.values():
            yield from numbers(value)
    elif isinstance(found, list):
        yield float(len(found))
        for value in found:
            yield from numbers(value)
        rows = [one for one in found if isinstance(one, dict)]
        for name, value in (rows[0] if rows else {}).items():
            if isinstance(value, float) and all(isinstance(row.get(name), float) for row in rows):
                yield sum(row[name] for row in rows) / len(rows)
    elif isinstance(found, int | float):
        yield float(found)


def is_rounded(text, value):
    """Whether a number in a text is a value, rounded."""
    number, digits = float(text.replace(",", "")), len(text.partition(".")[2])
    if "e" in text:
        return f"{value:.1e}" == f"{number:.1e}"
    error = 500.0 if number >= 1000 and number % 1000 == 0 else 0.5001 * 10.0**-digits
    return abs(value - number) <= error


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.partition("\n")[0])
def test_the_figures_of_the_performance_page_are_those_of_its_results(part):
    files = re.findall(r"\]\(([^)]+\.json)\)", part)
    known = {value for file in files for value in numbers(json.loads((DOCS / file).read_text()))}
    rows = [re.sub(r"`[^`]*`|\]\([^)]*\)", "", line) for line in part.splitlines() if line.startswith("|")]
    texts = {text for row in rows for text in NUMBER.findall(row)} - COMPUTED
    assert files
    assert not [text for text in texts if not any(is_rounded(text, unit * one) for one in known for unit in UNITS)]


def test_the_page_of_the_demo_names_its_hosts_and_when_the_prior_is_fitted():
    from recrawl.demo.world import SITES

    text = read("reference/demo.md")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| .*?\((\d+) h\) \|", text, re.MULTILINE)
    assert rows == [(site.name, str(site.n_pages), f"{site.hours:g}") for site in SITES]
    assert f"after {beliefs._FIRST_REFIT} comparisons" in " ".join(text.split())
    assert f"grown by {100 * (beliefs._REFIT_GROWTH - 1):.0f}%" in " ".join(text.split())


def test_the_table_of_the_demo_is_that_of_its_result():
    result = json.loads((ROOT / "benchmarks/results/demo.json").read_text())
    rows = re.findall(
        r"^\| (\d+|mean) \| (.*) \|$", section(read("reference/demo.md"), "## What to expect"), re.MULTILINE
    )
    names = ("freshness", "without_signals", "uniform", "nutch", "second_half", "forecast", "low", "high", "expected")
    expected = [(str(one["seed"]), " | ".join(f"{one[name]:.3f}" for name in names)) for one in result["runs"]]
    means = [sum(one[name] for one in result["runs"]) / len(result["runs"]) for name in names]
    assert rows == [*expected, ("mean", " | ".join(f"{value:.3f}" for value in means))]


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_every_picture_is_shown_somewhere():
    text = "".join(path.read_text() for path in LINKED)
    assert not [path.name for path in (DOCS / "images").iterdir() if f"images/{path.name})" not in text]


@pytest.mark.slow
def test_the_picture_of_solve_is_what_its_command_draws(tmp_path):
    from matplotlib.image import imread
    from typer.testing import CliRunner

    drawn = tmp_path / "solve.png"
    command = ["solve", str(ROOT / "examples/pages.csv"), "--budget", "150/day", "--plot", str(drawn)]
    assert CliRunner().invoke(app, command).exit_code == 0
    shown = imread(DOCS / "images/solve.png")
    assert abs(imread(drawn) - shown).mean() < 0.5 / 255


@pytest.mark.full
def test_the_pictures_of_the_concepts_are_what_their_script_draws(tmp_path):
    from matplotlib.image import imread

    names: dict = {"__name__": "draw", "__file__": str(DOCS / "draw.py")}
    exec(compile((DOCS / "draw.py").read_text(), str(DOCS / "draw.py"), "exec"), names)
    for name, draw in names["PICTURES"].items():
        draw().savefig(tmp_path / f"{name}.png", dpi=110)
        assert abs(imread(tmp_path / f"{name}.png") - imread(DOCS / f"images/{name}.png")).mean() < 0.5 / 255, name
