"""The files of deploy/: units that systemd accepts, a dashboard of metrics that exist, a container file that fits."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from recrawl.cli.commands import call
from recrawl.crawl.config.settings import Settings

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


def options_of(name):
    """The options of a unit's service, each with its value."""
    lines = (DEPLOY / name).read_text(encoding="utf-8").partition("[Service]")[2].partition("[Install]")[0]
    return dict(re.findall(r"^(\w+)=(.*)$", lines, re.M))


def test_the_backup_is_restricted_as_the_crawl_and_leaves_its_folder_alone():
    """systemd sets the mode of a state directory at each start: the units share one."""
    crawl, backup = options_of("recrawl.service"), options_of("recrawl-backup.service")
    kinds = r"Protect|Private|Restrict[A-Z]|SystemCall|Capab|NoNew|Lock"
    restricting = [name for name in crawl if re.match(kinds, name)]
    restricting.remove("RestrictAddressFamilies")
    assert len(restricting) > 15
    assert {name: backup.get(name) for name in restricting} == {name: crawl[name] for name in restricting}
    assert set(backup["RestrictAddressFamilies"].split()) <= set(crawl["RestrictAddressFamilies"].split())
    shared = ("User", "DynamicUser", "StateDirectoryMode", "UMask")
    assert [backup[name] for name in shared] == [crawl[name] for name in shared]
    assert crawl["StateDirectory"] in backup["StateDirectory"].split()


def test_running_crawls_have_time_to_end():
    """Crawls 20 s and subscribers 15 s, in the unit and in the documented command of a container."""
    assert int(options_of("recrawl.service")["TimeoutStopSec"]) > 35
    for file in (DEPLOY / "Containerfile", HERE / "docs/guides/operate.md"):
        allowed = [int(found) for found in re.findall(r"--stop-timeout (\d+)", file.read_text(encoding="utf-8"))]
        assert allowed, file
        assert min(allowed) > 35


@pytest.mark.parametrize("name", ["recrawl.service", "recrawl-backup.service"])
def test_the_commands_of_the_units_exist(name, capsys):
    lines = re.findall(r"^Exec(?:Start|Reload)=\S+/recrawl (.*)$", (DEPLOY / name).read_text(encoding="utf-8"), re.M)
    assert len(lines) == (2 if name == "recrawl.service" else 1)
    for line in lines:
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
    named = [*words[:2], "--help"] if words[0] == "cluster" else [words[0], "--help"]
    assert call(named) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in words if word.startswith("--"))


def commands_of(one):
    """The commands that a container runs: those of recrawl in a shell, or words for the entry point."""
    words = one.get("command") or one.get("args") or []
    if one.get("entrypoint") == ["/bin/sh", "-c"] or one.get("command") == ["/bin/sh", "-c"]:
        line = one["args"][0] if "args" in one else words[0]
        return [part.strip().removeprefix("recrawl ").split() for part in line.split("||")]
    return [words] if words else []


def check_environment(names):
    """Every variable of recrawl is a setting."""
    known = {f"RECRAWL_{name.upper()}" for name in Settings.__dataclass_fields__}
    assert {name for name in names if name.startswith("RECRAWL_")} <= known


def listens(command):
    return int(command[command.index("--listen") + 1].rpartition(":")[2])


def test_the_compose_file_names_only_what_exists(capsys):
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    services = found["services"]
    assert sum(name.startswith("worker-") for name in services) == 3
    assert {"postgres", "service", "prometheus"} <= set(services)
    for name, one in services.items():
        assert set(one.get("depends_on", ())) <= set(services), name
        if "build" in one:
            assert (DEPLOY / one["build"]["context"] / one["build"]["dockerfile"]).is_file()
            check_environment(one["environment"])
            for command in commands_of(one):
                check_command(command, capsys)
        for volume in one.get("volumes", ()):
            source = volume.split(":")[0]
            made = source == "./prometheus.token"  # by the commands in the head of the file
            assert made or source in found["volumes"] or (DEPLOY / source).is_file(), volume
    port = listens(services["service"]["command"])
    assert services["service"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text(encoding="utf-8"))["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"service:{port}"]}]
    token = job["authorization"]["credentials_file"]
    assert any(volume.split(":")[1] == token for volume in services["prometheus"]["volumes"])


def test_the_kubernetes_manifest_is_consistent(capsys):
    parts = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
    assert all(part["apiVersion"] and part["metadata"]["name"] for part in parts)
    assert len({(part["kind"], part["metadata"]["name"]) for part in parts}) == len(parts)
    maps = {part["metadata"]["name"]: part["data"] for part in parts if part["kind"] == "ConfigMap"}
    ports = {}
    for part in parts:
        if "template" not in part.get("spec", {}):
            continue
        labels, pod = part["spec"]["template"]["metadata"]["labels"], part["spec"]["template"]["spec"]
        if "selector" in part["spec"]:
            assert part["spec"]["selector"]["matchLabels"] == labels
        for one in pod["containers"]:
            opened = [port["containerPort"] for port in one.get("ports", ())]
            ports[labels["app"]] = opened
            names = [variable["name"] for variable in one["env"]]
            for source in one.get("envFrom", ()):
                names += maps[source["configMapRef"]["name"]]
            check_environment(names)
            for command in commands_of(one) if one["image"] == "recrawl" else ():
                check_command(command, capsys)
                assert "--listen" not in command or opened == [listens(command)]
            for probe in ("livenessProbe", "readinessProbe"):
                if "httpGet" in one.get(probe, {}):
                    assert one[probe]["httpGet"]["port"] in opened
                    assert f'"{one[probe]["httpGet"]["path"]}"' in (HERE / "src/recrawl/serve/health.py").read_text()
    assert set(maps["recrawl"]) == {"RECRAWL_BUDGET"}
    for part in parts:
        if part["kind"] == "Service":
            assert part["spec"]["ports"][0]["targetPort"] in ports[part["spec"]["selector"]["app"]]
    assert next(part for part in parts if part["metadata"]["name"] == "recrawl-worker")["spec"]["replicas"] == 3


def test_the_image_has_what_clusters_need():
    assert re.search(r"\[[\w,]*\bpostgres\b[\w,]*\]", (DEPLOY / "Containerfile").read_text(encoding="utf-8"))
