"""Parts of the dashboard by themselves: sessions, texts of settings, differences, lists, history."""

import asyncio
import tomllib
from dataclasses import replace

import pytest

from recrawl import Engine
from recrawl.crawl.audit.history import MOST, History, points_of
from recrawl.crawl.detect.diff import Diff
from recrawl.crawl.http.memory import ManualClock
from recrawl.crawl.signals.tokens import Tokens, new_token
from recrawl.errors import ParameterError
from recrawl.serve.dashboard.gate import local_path
from recrawl.serve.dashboard.pages.contents import Change, last_changes, title_of
from recrawl.serve.dashboard.pages.timeline import Entry, timeline
from recrawl.serve.dashboard.sessions import LIFETIME, Sessions
from recrawl.serve.dashboard.settings.settings_routes import rule_effects
from recrawl.serve.dashboard.settings.settings_text import HIDDEN, parse_rules, rules_text, write_settings
from recrawl.store import MemoryStore
from recrawl.store.protocol import Outcome

RULES = ({"match": "https://a.example/*", "importance": 5, "headers": {"X-Key": "very secret", "X-B": 'é"\\'}},)


def sessions(*scopes):
    clock = ManualClock(1000.0)
    made = [new_token(f"t{k}", [scope], 0.0) for k, scope in enumerate(scopes)]
    tokens = Tokens([token for _, token in made])
    return Sessions(tokens, clock), tokens, clock, [text for text, _ in made]


def test_tokens_with_read_or_admin_open_the_dashboard():
    found, _, _, (admin, read, signal, crawl) = sessions("admin", "read", "signal", "crawl")
    assert found.find(found.by_token(admin)).may_act
    assert not found.find(found.by_token(f" {read}\n")).may_act
    assert found.by_token(signal) is found.by_token(crawl) is found.by_token("") is found.by_token("x" * 300) is None


def test_a_session_ends_with_its_token_its_time_and_by_signing_out():
    found, tokens, clock, (admin, read, other) = sessions("admin", "read", "read")
    first, second, third = found.by_token(admin), found.by_token(read), found.by_token(other)
    tokens.set("t0", None)
    assert found.find(first) is None
    found.end(second)
    assert found.find(second) is None
    assert found.find(third) is not None
    clock._now += LIFETIME + 1.0
    assert found.find(third) is None
    assert found.find(None) is found.find("guess") is None


def test_a_token_of_the_same_name_does_not_revive_a_session():
    found, tokens, _, (admin,) = sessions("admin")
    cookie = found.by_token(admin)
    tokens.set("t0", new_token("t0", ["admin"], 0.0)[1])
    assert found.find(cookie) is None


def test_the_link_works_once_and_for_an_hour():
    found, _, clock, _ = sessions()
    code = found.new_code()
    assert found.by_code("guess") is None
    cookie = found.by_code(code)
    assert found.find(cookie).may_act
    assert found.by_code(code) is None
    late = found.new_code()
    clock._now += 3601.0
    assert found.by_code(late) is None
    assert found.find(cookie) is not None


@pytest.mark.parametrize(
    "given", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "", None]
)
def test_signing_in_leads_to_paths_of_ours_alone(given):
    assert local_path(given) == "/"


def test_rules_come_back_from_their_text_with_hidden_values():
    text = rules_text(RULES)
    assert "very secret" not in text
    assert HIDDEN in text
    assert parse_rules(text, RULES) == RULES
    assert parse_rules("", RULES) == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[[rule]]\nmatch = "https://new.example/*"\nheaders = { X = "(hidden)" }', "had none"),
        ('budget = "9/s"', "only [[rule]] tables"),
        ("[[rule]", "rules:"),
        ("rule = 3", "only [[rule]] tables"),
    ],
)
def test_rules_that_cannot_be_used(text, why):
    with pytest.raises(ParameterError) as problem:
        parse_rules(text, RULES)
    assert why in str(problem.value)


def test_settings_are_written_with_what_stands_above_the_rules(tmp_path):
    from recrawl.crawl.config.settings import Settings

    file = tmp_path / "recrawl.toml"
    file.write_text('# my crawl\ncontact = "a@example.org"\nbudget = "1/s"  # slow\n\n[[rule]]\nmatch = "x*"\n')
    write_settings(file, "2/s", RULES)
    text = file.read_text()
    assert text.startswith('# my crawl\ncontact = "a@example.org"\nbudget = "2/s"\n')
    read = Settings.read(file)
    assert (read.budget, read.rule, read.contact) == ("2/s", RULES, "a@example.org")
    assert 'match = "x*"' in (tmp_path / "recrawl.toml.bak").read_text()
    write_settings(file, None, ())
    assert Settings.read(file).rule == ()
    notify = '[[notify]]\nname = "me"\nmail = "a@b.org"\n'
    file.write_text(f'[[rule]]\nmatch = "x*"\n{notify}[[rule]]\nmatch = "y*"\n')
    write_settings(file, "3/s", RULES)
    kept = tomllib.loads(file.read_text())
    assert (kept["notify"], kept["rule"]) == ([{"name": "me", "mail": "a@b.org"}], [dict(rule) for rule in RULES])
    file.write_text('rule = [{ match = "x*" }]\n')
    with pytest.raises(ParameterError, match="by hand"):
        write_settings(file, None, RULES)
    assert file.read_text() == 'rule = [{ match = "x*" }]\n'
    write_settings(tmp_path / "new.toml", "5/day", None)
    assert Settings.read(tmp_path / "new.toml").budget == "5/day"


def test_effects_of_rules_by_what_changes():
    from recrawl.crawl.config.rules import Rule, Rules

    urls = [f"https://a.example/{k}" for k in range(5)] + ["https://b.example/"]
    old, new = Rules(), Rules([Rule("https://a.example/*", importance=2.0), Rule("https://b.*", never=True)])
    effects, examples = rule_effects(urls, old, new)
    assert effects == {"importance": 5, "no longer crawled": 1}
    assert examples["importance"] == urls[:3]
    assert rule_effects(urls, new, old)[0] == {"importance": 5, "crawled again": 1}
    assert rule_effects(urls, new, new)[0] == {}


BEFORE = b"<html><p>one</p><p>two</p><script>x = 1</script><p>three</p>"
AFTER = b"<html><p>one</p><p>2 &lt;b&gt;</p><script>x = 2</script><p>three</p>"
URL = "https://a.example/"


def changes_of(outcomes, **options):
    """What is shown of the changes of a page after some outcomes."""

    async def run():
        store = MemoryStore(**options)
        engine = Engine(1.0)
        engine.add([URL], 0.0)
        await store.save(rows=engine.rows())
        for outcome in outcomes:
            await store.save([outcome])
        return await last_changes(store, (await store.copies([URL]))[URL])

    return asyncio.run(run())


def crawled(k, body, text=None, changed=True):
    found = {"status": 200, "digest": f"main:{k}", "content_type": "text/html", "body": body, "text": text}
    return Outcome(URL, 100.0 * k, changed=changed if k else None, **found)


@pytest.mark.parametrize("texts", [False, True], ids=["bodies", "events"])
def test_a_change_has_what_went_and_came(texts):
    text = ("one\ntwo\nthree", "one\n2 <b>\nthree") if texts else (None, None)
    outcomes = [crawled(0, BEFORE, text[0]), crawled(1, AFTER, text[1])]
    (change,) = changes_of(outcomes, keep=1 if texts else 2)
    assert [tuple(line) for line in change.diff.lines] == [(" ", "one"), ("-", "two"), ("+", "2 <b>"), (" ", "three")]
    assert (change.after_at, change.before_at) == (100.0, None if texts else 0.0)


def test_changes_are_shown_as_far_as_they_are_kept():
    bodies = [BEFORE, AFTER, BEFORE.replace(b"one", b"1")]
    outcomes = [crawled(k, body) for k, body in enumerate(bodies)]
    assert changes_of(outcomes, keep=1) == []
    assert [change.after_at for change in changes_of(outcomes, keep=9)] == [200.0, 100.0]
    unseen = changes_of([crawled(0, BEFORE), crawled(1, BEFORE.replace(b"x = 1", b"x = 3"))], keep=2)
    assert unseen[0].diff.lines == ()


def test_a_timeline_has_crawls_changes_and_signals_by_time():
    quiet = [Outcome(URL, 100.0 * k, status=200, changed=False) for k in range(2, 7)]
    crawls = [*quiet[::-1], Outcome(URL, 100.0, status=200, changed=True), Outcome(URL, 0.0, failure="timeout")]
    change, older = (Change(at, None, Diff((), 0, 0)) for at in (100.0, -50.0))
    signal = Entry(650.0, "signal", "feed: waits for the next crawl")
    found = timeline(crawls, [change, older], [signal])
    shown = [(one.at, one.kind, one.n, one.since, one.change) for one in found]
    assert shown == [
        (650.0, "signal", 1, None, None),
        (600.0, "unchanged", 5, 200.0, None),
        (100.0, "changed", 1, None, change),
        (0.0, "failed", 1, None, None),
        (-50.0, "changed", 1, None, older),
    ]
    assert found[3].detail == "timeout"
    apart = timeline(crawls[:2], [], [replace(signal, at=550.0)])
    assert [one.kind for one in apart] == ["unchanged", "signal", "unchanged"]
    flapped = timeline([replace(one, flapping=True) for one in quiet[::-1]], [])
    assert [one.n for one in flapped] == [1] * 5, "what is worth a remark stays"
    signalled = [replace(one, signalled=0b110) for one in crawls[-2:]]
    marked = timeline(signalled, [], (), ["feed", "sitemap", "webhook:cms"].__getitem__)
    assert marked[0].detail == "after a signal of sitemap and of webhook:cms"
    assert marked[1].detail == "timeout, after a signal of sitemap and of webhook:cms"
    assert timeline([], []) == []


def test_titles_are_text():
    assert title_of(b"<TITLE lang=en>\n A \xff &amp; B</TITLE>") == "A \ufffd & B"
    assert title_of(b"no title") == title_of(b"<title>") == ""
    assert len(title_of(b"<title>" + b"x" * 1000 + b"</title>")) == 201


def test_a_history_is_bounded_and_keeps_its_sums():
    history = History()
    for k in range(1, 3 * MOST):
        history.add(60.0 * k, (0.5, None), (2 * k, k, k // 2))
    points = history.points
    assert len(points) <= MOST
    assert [point.at for point in points] == sorted(point.at for point in points)
    assert sum(point.requests for point in points) == 2 * (3 * MOST - 1)
    assert points[-1].at - points[-2].at == 60.0
    again = History()
    again.restore(history.as_note())
    assert again.points == points_of(history.as_note())
    again.add(1e6, (None, None), (5, 5, 5))  # the counts of a run begin at 0
    assert again.points[-1].requests == 5


def test_the_link_is_printed_on_a_terminal_alone(monkeypatch, capsys):
    from recrawl.cli.shared.options.own_server import print_sign_in

    class Server:
        url = "http://127.0.0.1:1"

        def sign_in_url(self):
            return f"{self.url}/sign-in?code=secret"

    print_sign_in(Server())
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    print_sign_in(Server())
    assert "code=secret" in capsys.readouterr().err
