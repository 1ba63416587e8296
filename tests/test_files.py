"""Files that recrawl writes: complete or absent, and named where they cannot be written."""

import errno
import os

import pytest

from recrawl._system.files import named, whole_file

FULL = "/dev/full"  # every write to it fails as on a full disk


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "rates.csv"
    with whole_file(path) as partial:
        partial.write_text("a\n")
        assert not path.exists()
        assert partial.suffix == ".csv"
    assert (path.read_text(), os.listdir(tmp_path)) == ("a\n", ["rates.csv"])


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("old\n")
    path.chmod(0o600)

    def fail():
        with whole_file(path) as partial:
            partial.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (path.read_text(), os.listdir(tmp_path)) == ("old\n", ["rates.csv"])
    with whole_file(path) as partial:
        partial.write_text("new\n")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new\n", 0o600)


def test_a_link_is_followed_and_a_device_is_written_directly(tmp_path):
    (tmp_path / "real.csv").write_text("old\n")
    (tmp_path / "link.csv").symlink_to("real.csv")
    with whole_file(tmp_path / "link.csv") as partial:
        partial.write_text("new\n")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new\n"
    (tmp_path / "full.csv").symlink_to(FULL)
    with pytest.raises(OSError, match="full") as raised, whole_file(tmp_path / "full.csv") as partial:
        partial.write_text("lost")
    assert raised.value.errno == errno.ENOSPC


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(OSError, match=r"No space left on device: 'events\.jsonl'"), named("events.jsonl"):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(FileNotFoundError) as raised, whole_file(tmp_path / "no" / "rates.csv") as partial:
        partial.write_text("")
    assert raised.value.filename == str(tmp_path / "no" / "rates.csv")
