"""recrawl notify and recrawl backup: what they print, and their exit codes."""

import json

import pytest
from crawl.mailbox import receiving

from recrawl.cli.commands import call

from .test_crawl import RUN, added, site  # noqa: F401

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
    assert "the server cannot be reached" in capsys.readouterr().err, "whether it is a cluster is not known"


def test_a_crawl_sends_mails_and_posts_of_changes(here, mailbox, run, run_until, site):  # noqa: F811
    """Settings, crawl, change, difference, mail server and receiver: all real."""
    tables = f'''[[notify]]
name = "team"
match = "*/p/1"
mail = "you@example.org"
[[notify]]
name = "chat"
match = "*/p/2"
webhook = "{site.url}/hook"
template = {{ text = "{{subject}} {{diff}}" }}
allow_private = true
[[notify]]
name = "broken"
webhook = "http://127.0.0.1:9/secret-path"
'''
    (here / "recrawl.toml").write_text(settings(tables, mailbox.serve()))
    added(run, site, 3)
    result = run_until(lambda: mailbox.mails and site.posts, *RUN)
    assert result.code == 0, result
    mail = mailbox.mails[0][1]
    assert mail["Subject"].startswith("changed: /p/1 ")
    assert "\n  + /p/1 " in mail.get_body(("plain",)).get_content()
    text = json.loads(site.posts[0][1])["text"]
    assert text.startswith("changed: /p/2 ")
    assert "\n+ /p/2 " in text
    found = json.loads(run("status", "--json").out)
    by_name = {one["name"]: one for one in found["events"]["subscribers"]}
    assert by_name["notify:broken"]["failures"] > 0
    assert "private" in by_name["notify:broken"]["failure"]
    assert by_name["notify:team"]["failures"] == 0
    assert "secret-path" not in result.err + result.out + json.dumps(found)
    (here / "recrawl.toml").write_text("")
    asked = len(site.asked)
    assert run_until(lambda: len(site.asked) > asked, *RUN).code == 0
    found = json.loads(run("status", "--json").out)
    assert found["events"]["subscribers"] == [], "notifications that are gone are forgotten"
