"""``recrawl reload`` and SIGHUP: the running crawl reads its settings again and goes on."""

import asyncio
import json
import os
import signal

import pytest

from recrawl.cli.crawl.reload import ask
from recrawl.cli.shared.options.interrupts import note_hangups, reload_on_hangup
from recrawl.crawl import Settings
from recrawl.errors import ParameterError
from recrawl.store import BlockingStore, SqliteStore

from .test_crawl import RUN, added, here, refused, site  # noqa: F401

LINES = 'budget = "{budget}"\nkeep = {keep}\n'
ARGUMENTS = [word for k, word in enumerate(RUN) if "--budget" not in RUN[max(k - 1, 0) : k + 1]]


@pytest.mark.slow
def test_a_running_crawl_reads_its_settings_again(run, run_until, site, here):  # noqa: F811
    added(run, site)
    file, before, answers = here / "recrawl.toml", len(site.asked), []
    file.write_text(LINES.format(budget="20/s", keep=1))

    def steps():
        if len(site.asked) < before + 5:
            return False
        file.write_text("budget = 'often'\n")
        with pytest.raises(ParameterError, match=r"keeps its settings: .*often"):
            ask(Settings(), 30.0)
        file.write_text(LINES.format(budget="40/s", keep=2))
        answers.append(ask(Settings(), 30.0))
        answers.append(ask(Settings(), 30.0))
        return True

    result = run_until(steps, *ARGUMENTS, "--log-level", "info", "--log-format", "json")
    assert result.code == 0, result
    assert [(one["changed"], one["needs_restart"]) for one in answers] == [(["budget"], ["keep"]), ([], ["keep"])]
    records = [json.loads(line) for line in result.err.splitlines()]
    events = [one for one in records if one["event"].startswith("settings.")]
    assert [one["event"] for one in events] == ["settings.refused", "settings.reloaded", "settings.reloaded"]
    assert "often" in events[0]["error"]
    assert (events[1]["changed"], events[1]["needs_restart"]) == ("budget", "keep")


def test_a_signal_that_comes_while_a_crawl_is_loaded_does_not_end_it():
    """It is noted, and the settings are read again as soon as they can be; later ones too."""
    reloads = []

    async def reload():
        reloads.append(len(reloads))

    async def main():
        loop = asyncio.get_running_loop()
        noted = note_hangups()
        os.kill(os.getpid(), signal.SIGHUP)
        while not noted:
            await asyncio.sleep(0.001)
        reload_on_hangup(reload, lambda: None, noted)
        os.kill(os.getpid(), signal.SIGHUP)
        while len(reloads) < 2:
            await asyncio.sleep(0.001)
        loop.remove_signal_handler(signal.SIGHUP)

    asyncio.run(main())
    assert reloads == [0, 1]


def test_without_a_crawl_there_is_nothing_to_reload(run, here):  # noqa: F811
    assert "there is no such database" in refused(run, "reload")
    run("add", "https://a.example/")
    assert "no crawl is running" in refused(run, "reload")
    with BlockingStore(SqliteStore("recrawl.db")):
        assert "which is not a crawl that can reload" in refused(run, "reload")
