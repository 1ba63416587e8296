"""recrawl notify and recrawl backup: what they print, and their exit codes."""

import json

import pytest
from crawl.mailbox import receiving

from recrawl.cli.commands import call

pytestmark = pytest.mark.slow


@pytest.fixture
def mailbox():
    with receiving() as box:
        yield box


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(text, port=1):
    return f'smtp = "127.0.0.1:{port}"\nsmtp_tls = "none"\nsmtp_from = "recrawl@example.org"\n{text}'


def test_a_test_message_arrives(here, mailbox, capsys):
    table = '[[notify]]\nname = "team"\nmail = "you@example.org"\n[[notify]]\nname = "chat"\nwebhook = "http://127.0.0.1:9/x"\n'
    (here / "recrawl.toml").write_text(settings(table, mailbox.serve()))
    assert call(["notify"]) == 0
    assert capsys.readouterr().out.split() == ["team", "mail", "*", "chat", "webhook", "*"]
    assert call(["notify", "team", "--test"]) == 0
    assert capsys.readouterr().out.split() == ["team", "sent"]
    ((_, mail),) = mailbox.mails
    assert mail["Subject"] == "changed: Test of recrawl"
    assert call(["notify", "--test", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["notify"]
    assert [(one["name"], one["sent"], one["error"]) for one in found] == [
        ("team", True, None),
        ("chat", False, "the address is private and allow_private is not set"),
    ]
    assert call(["notify", "tema"]) == 2
    assert "team" in capsys.readouterr().err


def test_without_notifications_there_is_nothing_to_send(here, capsys):
    assert call(["notify", "--test"]) == 2
    assert "no [[notify]] table" in capsys.readouterr().err


def test_backups_in_a_folder(here, capsys):
    assert call(["add", "https://a.example/"]) == 0
    (here / "kept").mkdir()
    (here / "kept" / "recrawl-20200101T000000Z.db").touch()
    capsys.readouterr()
    assert call(["backup", "kept", "--keep", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["pages"], found["removed"]) == (1, 1)
    assert [str(path) for path in (here / "kept").iterdir()] == [str(here / found["backup"])]
    assert call(["status", "--database", found["backup"]]) == 0
    assert call(["backup", "copy.db", "--keep", "1"]) == 2
    assert call(["backup", "recrawl.db"]) == 2
    assert call(["backup", "x.db", "--database", "postgresql://u@localhost/x"]) == 2
    assert "pg_dump" in capsys.readouterr().err
