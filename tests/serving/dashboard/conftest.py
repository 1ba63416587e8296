"""One site, crawled for two days, with its dashboard: for all tests of a file."""

import pytest

from serving.dashboard.site import served


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """The server and its tokens."""
    folder = tmp_path_factory.mktemp("board")
    file = folder / "recrawl.toml"
    file.write_text('# the crawl of the tests\nbudget = "300/day"\n')
    with served(folder, days=2.0, copies=2, file=file, audit_share="10%", audit_draws=20) as (server, tokens):
        server.file = file
        server.figures()
        yield server, tokens
