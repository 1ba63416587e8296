"""What users expect of any command: -h, completion, budgets with units, quiet Ctrl-C, and what to install."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import recrawl
from recrawl.cli.shared.files.short_urls import short_url
from recrawl.cli.shared.options.extras import EXTRAS, missing_package
from recrawl.cli.shared.options.own_command import own_command

from .tree import commands, options

COMMANDS = dict(commands())
PAGES = "url,change_rate\nhttps://a.example/1,0.5\n"
LOG = "url,time,changed\n" + "".join(f"https://a.example/1,{1e9 + 9e4 * k:.0f},{k % 2}\n" for k in range(4))
NEEDED = {
    "solve": ["pages.csv"],
    "plan": ["log.csv"],
    "simulate": ["--world", "poisson"],
    "run": ["--contact", "a@example.org"],
    "audit": ["--contact", "a@example.org"],
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pages.csv").write_text(PAGES)
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path


# --- help -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", *sorted(COMMANDS)])
def test_help_has_a_short_name_and_flags_have_no_type(run, name):
    short, long = (run(*name.split(), option) for option in ("-h", "--help"))
    assert short.code == 0
    assert short.out == long.out
    assert "<bool>" not in short.out
    assert "BOOLEAN" not in short.out


def test_options_that_switch_off_are_of_what_is_on():
    off = {flag for command in COMMANDS.values() for flag in options(command)[1] if flag.startswith("--no-")}
    assert off == {"--no-siblings", "--no-crawl"}


def test_completion_offers_commands(here):
    script = {"_RECRAWL_COMPLETE": "complete_bash", "COMP_WORDS": "recrawl est", "COMP_CWORD": "1"}
    code = f"import os; os.environ.update({script}); from recrawl.cli import main; main([])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["estimate"], done.stderr


# --- budgets --------------------------------------------------------------------------------------------------------

BUDGETS = [
    (name, option) for name, command in COMMANDS.items() for option in options(command)[0] if "--budget" in option
]


@pytest.mark.parametrize(("name", "option"), BUDGETS)
def test_a_bare_number_is_refused_by_every_option(run, here, name, option):
    result = run(*name.split(), *NEEDED.get(name, []), option, "5000")
    line = "recrawl: budget '5000': 5000 what? 5000/day or 5000/s\n"
    assert (result.code, result.out, result.err) == (2, "", line)


@pytest.mark.parametrize("text", ['budget = "5000"', "budget = 5000", "environment"])
def test_a_bare_number_is_refused_in_settings_and_variables(run, here, monkeypatch, text):
    if text == "environment":
        monkeypatch.setenv("RECRAWL_BUDGET", "5000")
    else:
        (here / "recrawl.toml").write_text(text)
    for name in ("status", "add", "run", "audit"):
        result = run(name, *(["https://a.example/"] if name == "add" else []))
        assert (result.code, result.out) == (2, "")
        assert "5000 what? 5000/day or 5000/s" in result.err
    assert not (here / "recrawl.db").exists()


# --- what is missing or interrupted ---------------------------------------------------------------------------------

HIDDEN = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
class Hook:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            {then}
sys.meta_path.insert(0, Hook())
from recrawl.cli import main
main({argv!r})
"""


def hooked(names, then, *argv):
    code = HIDDEN.format(names=set(names), then=then, argv=list(argv))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("argv", [["add", "https://a.example/"], ["why", "https://a.example/"], ["run"], ["status"]])
def test_without_the_crawl_extra_one_line_says_what_to_install(here, argv):
    names = {module.partition(".")[0] for module in EXTRAS["crawl"]}
    done = hooked(names, "raise ModuleNotFoundError(name, name=name)", *argv)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("pip install 'recrawl[crawl]'\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("module", ["typer", "numpy"])
def test_ctrl_c_while_modules_are_loaded_is_quiet(here, module):
    done = hooked([module], "os.kill(os.getpid(), signal.SIGINT)", "solve", "pages.csv", "--budget", "1/day")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_every_package_of_an_extra_is_known():
    text = (Path(recrawl.__file__).parents[2] / "pyproject.toml").read_text()
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    modules = {"google-re2": "re2", "prometheus-client": "prometheus_client"}
    modules |= {"grpcio": "grpc", "protobuf": "google.protobuf"}
    for extra in EXTRAS:
        names = [re.split(r"[<>=;\[ ]", line)[0] for line in extras[extra] if line != "recrawl[crawl]"]
        assert {modules.get(name, name) for name in names} >= set(EXTRAS[extra])
        assert set(EXTRAS[extra]) >= {modules.get(name, name) for name in names} - {"backports.zstd"}
    assert (
        missing_package(ImportError("no", name="lxml.html")) == "this command needs lxml: pip install 'recrawl[crawl]'"
    )
    assert missing_package(ImportError("no", name="elsewhere")) is None


# --- what is printed ------------------------------------------------------------------------------------------------


def test_long_urls_are_shortened_in_the_middle():
    url = "https://docs.example.org/" + "x" * 200 + "/end.html"
    for width in (30, 48, 72):
        short = short_url(url, width)
        assert len(short) == width
        assert short.startswith("https://docs.example"[: width // 2])
        assert short.endswith(".html")
    assert short_url("https://a.example/") == "https://a.example/"


def test_a_table_of_long_urls_stays_one_line_per_page(run, here):
    (here / "log.csv").write_text(LOG.replace("/1,", "/" + "long/" * 60 + "1,"))
    result = run("estimate", "log.csv")
    assert "…" in result.out
    assert max(map(len, result.out.splitlines())) <= 160


def test_a_table_in_a_pipe_has_whole_urls(run, here):
    urls = [f"https://docs.example.org/reference/page-{k}" for k in range(3)]
    rows = [f"{url},{day},{day % 2}" for url in urls for day in range(4)]
    (here / "log.csv").write_text("\n".join(["url,time,changed", *rows]))
    assert [url for url in urls if url in run("estimate", "log.csv").out] == urls


def test_the_own_command_is_written_as_it_was_run(here, monkeypatch):
    script = here / "a folder" / "bin" / "recrawl"
    script.parent.mkdir(parents=True)
    script.write_text("")
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert own_command("why", "https://a.example/?a=1&b=2") == "'a folder/bin/recrawl' why 'https://a.example/?a=1&b=2'"
    monkeypatch.setattr(sys, "argv", [str(Path(recrawl.__file__).parent / "__main__.py")])
    assert own_command("status").endswith(" -m recrawl status")
    monkeypatch.setattr(sys, "argv", ["elsewhere"])
    assert own_command("status") == "recrawl status"
