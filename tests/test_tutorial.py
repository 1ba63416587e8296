"""The tutorial: every command works as printed, on a free port, with less time and more budget."""

import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl.cli import main

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/tutorial.md").read_text()
CHANGED = {"http://127.0.0.1:8000": "http://127.0.0.1:{port}", "--for 300s": "--for 5s"}
SETTINGS = {'"2/s"': '"20/s"', '"0.1 s"': '"0.01 s"'}
SKIPPED = ("python3 -m venv", ". .venv", "pip install", "python examples/site.py", "rm ", "recrawl --version")


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def replaced(text, changes):
    for before, after in changes.items():
        assert before in TEXT, f"{before} is not part of the tutorial any more"
        text = text.replace(before, after)
    return text


@pytest.fixture
def port():
    """The tutorial's site, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    site = [sys.executable, str(ROOT / "examples/site.py"), "--port", str(number)]
    with subprocess.Popen(site, stdout=subprocess.PIPE, text=True) as process:
        assert f":{number}/sitemap.xml" in process.stdout.readline()
        yield number
        process.terminate()


@pytest.mark.slow
def test_every_command_works_as_printed(port, tmp_path, monkeypatch, capsys):
    (tmp_path / "recrawl.toml").write_text(replaced(blocks("toml")[0], SETTINGS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "dumb")
    said = {}
    for line in "".join(blocks("sh")).splitlines():
        if line.startswith(SKIPPED) or "example.org" in line:
            continue
        program, *words = shlex.split(replaced(line, CHANGED).format(port=port))
        assert program == "recrawl"
        with pytest.raises(SystemExit) as ended:
            main(words)
        done = capsys.readouterr()
        assert ended.value.code == 0, f"{line}\n{done.out}{done.err}"
        said[words[0]] = done.out
    assert said["add"].strip() == "30 pages added, 0 known already, 30 in recrawl.db; 1 listing to be polled"
    assert said["add"].strip() in TEXT
    assert {"add", "run", "status", "why", "events", "audit", "export", "plan"} == set(said)
    assert (tmp_path / "changes.jsonl").read_text().count('"kind": "new"') > 0
