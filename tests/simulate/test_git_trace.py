"""Git histories as traces, from real repositories made on the spot."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest

from recrawl.cli import main
from recrawl.errors import ParameterError
from recrawl.simulate import read_trace
from recrawl.simulate.traces.git import git_trace

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Repository:
    """A git repository in a folder, with a clock of its own."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder, self.now = folder, 1_600_000_000
        self("init", "-q", "-b", "main")

    def __call__(self, *command):
        stamp = f"{self.now} +0000"
        who = {f"GIT_{role}_{what}": "x@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        env = {**kept, **who, "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp, "GIT_CONFIG_GLOBAL": os.devnull}
        subprocess.run(["git", *command], cwd=self.folder, env=env, check=True, capture_output=True)

    def commit(self, after=1000, **files):
        """Write files (None: delete) and commit them ``after`` seconds later."""
        self.write({name.replace("__", "/"): text for name, text in files.items()}, after)

    def write(self, files, after=1000):
        self.now += after
        for name, text in files.items():
            path = self.folder / os.fsdecode(name)
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self("add", "-A")
        self("commit", "-q", "--allow-empty", "-m", "x")


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "site")


def seen(trace):
    """{key: (created, deleted or None, changes)}, in seconds after the trace's start."""
    changes = np.split(trace.changed_at - trace.start, trace.offset[1:-1])
    ends = [None if end >= trace.end else end - trace.start for end in trace.deleted_at.tolist()]
    lives = zip((trace.created_at - trace.start).tolist(), ends, (c.tolist() for c in changes), strict=True)
    return dict(zip(trace.url.tolist(), lives, strict=True))


def test_files_are_pages_and_commits_are_changes(repository):
    repository.commit(a="1", docs__x="1", docs__deep__er__y="1")
    repository.commit(a="2", docs__x="2")
    repository.commit()
    repository.commit(a="3", docs__x=None, b="1")
    repository.commit(b="2")
    trace = git_trace(repository.folder)
    assert seen(trace) == {
        "a": (0.0, None, [1000.0, 3000.0]),
        "docs/deep/er/y": (0.0, None, []),
        "docs/x": (0.0, 3000.0, [1000.0]),
        "b": (3000.0, None, [4000.0]),
    }
    assert trace.start == 1_600_001_000
    assert trace.group.tolist() == ["site", "docs/deep", "docs", "site"]


def test_the_main_line_counts_and_side_branches_do_not(repository):
    repository.commit(a="1")
    repository("checkout", "-q", "-b", "side")
    repository.commit(b="1")
    repository.commit(b="2")
    repository("checkout", "-q", "main")
    repository.commit(a="2")
    repository.now += 1000
    repository("merge", "-q", "--no-ff", "side", "-m", "merge")
    trace = git_trace(repository.folder)
    assert seen(trace) == {"a": (0.0, None, [3000.0]), "b": (4000.0, None, [])}


def test_renames_are_new_pages_unless_followed(repository):
    text = "\n".join(map(str, range(50)))
    repository.commit(old=text, other="1")
    repository("mv", "old", "new")
    repository.commit()
    repository("mv", "new", "newer")
    repository.commit(newer=text + "\n50")
    repository.commit(newer=text)
    assert seen(git_trace(repository.folder)) == {
        "old": (0.0, 1000.0, []),
        "other": (0.0, None, []),
        "new": (1000.0, 2000.0, []),
        "newer": (2000.0, None, [3000.0]),
    }
    followed = seen(git_trace(repository.folder, follow=True))
    assert followed == {"newer": (0.0, None, [2000.0, 3000.0]), "other": (0.0, None, [])}


def test_a_file_that_comes_back_is_a_new_page(repository):
    repository.commit(a="1", b="1")
    repository.commit(a=None)
    repository.commit(a="1")
    repository.commit(b="2")
    trace = git_trace(repository.folder)
    assert trace.url.tolist() == ["a", "b", "a"]
    assert (trace.created_at - trace.start).tolist() == [0.0, 0.0, 2000.0]
    assert (trace.deleted_at - trace.start).tolist() == [1000.0, 3000.0, 3000.0]


def test_odd_names_and_clocks_that_go_back(repository):
    names = ["two words", "new\nline", 'quo"te', "M", "ünï", b"\xff\xfe.txt", "\x01123", "tab\there"]
    repository.write(dict.fromkeys(names, "1"))
    repository.write(dict.fromkeys(names, "2"), after=-5000)
    repository.write({"M": "3"}, after=6000)
    found = seen(git_trace(repository.folder))
    assert set(found) == {n if isinstance(n, str) else "\\xff\\xfe.txt" for n in names}
    assert found["M"] == (0.0, None, [1000.0])  # the second commit counts at the first one's time: no time has passed


def test_a_path_and_a_date_narrow_it(repository):
    repository.commit(a="1", docs__x="1", docsx="1")
    repository.commit(a="2", docs__x="2")
    repository.commit(docs__y="1", docs__x="3")
    repository.commit(docs__y="2", docs__x=None)
    assert set(seen(git_trace(repository.folder, path="docs"))) == {"docs/x", "docs/y"}
    assert set(seen(git_trace(repository.folder / "docs"))) == {"docs/x", "docs/y"}
    later = git_trace(repository.folder, since=1_600_002_500)
    assert later.start == 1_600_002_500
    assert seen(later) == {
        "a": (0.0, None, []),
        "docs/x": (0.0, None, [500.0]),
        "docsx": (0.0, None, []),
        "docs/y": (500.0, None, [1500.0]),
    }


def test_the_command_writes_a_trace_that_can_be_read(repository, tmp_path, capsys):
    repository.commit(a="1", docs__x="1")
    for k in range(5):
        repository.commit(a=str(k + 2), after=86400)
    with pytest.raises(SystemExit) as ended:
        main(["trace", "git", str(repository.folder), "--out", str(tmp_path / "out"), "--json"])
    assert ended.value.code in (0, None)
    figures = json.loads(capsys.readouterr().out)
    assert figures == {
        "out": str(tmp_path / "out"),
        "pages": 2,
        "live": 2,
        "changes": 5,
        "first": "2020-09-13",
        "last": "2020-09-18",
    }
    trace = read_trace(tmp_path / "out", days=5)
    assert trace.url.tolist() == ["https://site/a", "https://docs/docs/x"]
    assert trace.n_changes.tolist() == [4, 0]  # one at the very end says nothing about staleness
    with pytest.raises(SystemExit):
        main(["trace", "git", str(repository.folder), "--out", str(tmp_path / "out")])
    assert "2 pages (2 live at the end), 5 changes, 2020-09-13 to 2020-09-18" in capsys.readouterr().out


def test_what_is_no_history_is_refused(repository, tmp_path):
    (tmp_path / "plain").mkdir()
    refused = [
        (tmp_path / "none", {}, "is not a folder"),
        (tmp_path / "plain", {}, "not a git repository"),
        (repository.folder, {}, "HEAD"),
    ]
    for folder, options, words in refused:
        with pytest.raises(ParameterError, match=words):
            git_trace(folder, **options)
    repository.commit(a="1")
    for options, words in [({}, "after its first"), ({"path": "b"}, "under b"), ({"since": "soon"}, "not a date")]:
        with pytest.raises(ParameterError, match=words):
            git_trace(repository.folder, **options)


def test_without_git_it_says_so(repository, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ParameterError, match="git is not installed"):
        git_trace(repository.folder)


def test_the_command_ends_in_one_line_on_bad_input(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["trace", "git", str(tmp_path / "none"), "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("recrawl: ")
