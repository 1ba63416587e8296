"""The files of deploy/: units that systemd accepts, a dashboard of metrics that exist, a container file that fits."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from recrawl.cli.commands import call

HERE = Path(__file__).parents[1]
DEPLOY = HERE / "deploy"
UNITS = sorted(path.name for path in DEPLOY.iterdir() if path.suffix in (".service", ".timer"))


def documented_metrics():
    return set(re.findall(r"^\| `(\w+)` \|", (HERE / "docs/reference/metrics.md").read_text(encoding="utf-8"), re.M))


def test_the_dashboard_names_only_metrics_that_exist():
    board = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"]
    named = set(re.findall(r"\b(?:recrawl|process)_\w+", " ".join(asked)))
    assert len(asked) > 20
    assert named <= documented_metrics(), named - documented_metrics()
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places), "no panel covers another"


def test_alerts_name_only_metrics_that_exist():
    text = (HERE / "docs/guides/operate.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:recrawl|process)_\w+", text.partition("## Alerts")[2]))
    assert len(named) > 8
    assert named <= documented_metrics()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS)
def test_systemd_accepts_the_units(unit, tmp_path):
    """With a program in place of recrawl, which is not installed where the units expect it."""
    for name in UNITS:
        text = (DEPLOY / name).read_text(encoding="utf-8").replace("/opt/recrawl/bin/recrawl", "/bin/true")
        (tmp_path / name).write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", str(tmp_path / unit)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["recrawl.service", "recrawl-backup.service"])
def test_the_commands_of_the_units_exist(name, capsys):
    (line,) = re.findall(r"^ExecStart=\S+/recrawl (.*)$", (DEPLOY / name).read_text(encoding="utf-8"), re.M)
    check_command(line.split(), capsys)


def test_the_container_file_copies_files_that_exist_and_runs_a_command(capsys):
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    copied = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY") and "--from" not in line]
    assert all((HERE / name).exists() for names in copied for name in names)
    (entry,), (command,) = (re.findall(rf"^{word} (\[.*\])$", text, re.M) for word in ("ENTRYPOINT", "CMD"))
    assert json.loads(entry) == ["recrawl"]
    check_command(json.loads(command), capsys)
    assert "USER recrawl" in text


def check_command(words, capsys):
    """The command and its options exist."""
    assert call([words[0], "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in words if word.startswith("--"))
