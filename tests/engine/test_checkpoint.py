"""Checkpoints: the state in a file, damage of it, and an engine brought up to date by the rows saved since."""

import numpy as np
import pytest

from recrawl._system.trees import DamagedFileError, read_about, read_tree, write_tree
from recrawl.engine import Engine
from recrawl.engine.checkpoint import checkpoint_about, read_checkpoint, write_checkpoint
from recrawl.engine.rows import take_later
from recrawl.schedule.testing.trial import same

DAY = 86400.0
COLUMNS = ("given", "fetched_at", "importance", "cost", "n_crawls", "n_changes", "fixed_rate", "watched", "seen")
COLUMNS += ("rate_evidence", "paused", "failures", "times_gone", "wait_until", "request_weight", "watched_from")


class Life:
    """A random life of an engine; the pages that it has touched and removed since a moment."""

    def __init__(self, seed, n=60, **settings):
        self.rng, self.now, self.n = np.random.default_rng(seed), 1e6, n
        self.engine = Engine(n / DAY, start=self.now, **settings)
        half = np.where(self.rng.random(n) < 0.5, self.now - self.rng.uniform(0, 5 * DAY, n), -np.inf)
        urls = [f"https://h{k % 3}.example/{k % 4}/{k}" for k in range(n)]
        self.engine.add(urls, self.now, importance=self.rng.uniform(1.0, 4.0, n), fetched_at=half)
        self.touched, self.removed = set(), []

    def _some(self, most=5):
        ids = self.engine.ids()
        return np.unique(self.rng.choice(ids, min(int(self.rng.integers(1, most)), len(ids))))

    def step(self):
        engine, rng = self.engine, self.rng
        self.now += float(rng.exponential(1800.0))
        ids = engine.pick(self.now, int(rng.integers(1, 6)))
        if len(ids):
            flags = rng.random(len(ids))
            failed, gone = flags < 0.05, flags > 0.97
            engine.record(ids, self.now, changed=rng.random(len(ids)) < 0.4, failed=failed, gone=gone)
        self.touched |= set(engine.url(ids))
        getattr(self, f"_{rng.choice(['rest', 'rest', 'add', 'remove', 'set', 'defer', 'signal', 'ask'])}")()

    def _rest(self):
        self.now += 600.0

    def _add(self):
        self.n += 1
        new = self.engine.add(
            [f"https://h{self.n % 5}.example/new/{self.n}"], self.now, importance=self.rng.uniform(1.0, 4.0)
        )
        self.touched |= set(self.engine.url(new))

    def _remove(self):
        some = self._some(3)
        self.removed += self.engine.url(some)
        self.engine.remove(some)

    def _set(self):
        some = self._some()
        self.engine.update(some, importance=self.rng.uniform(1.0, 9.0, len(some)))
        self.touched |= set(self.engine.url(some))

    def _defer(self):
        some = self._some(3)
        self.engine.defer(some, self.now + DAY)
        self.touched |= set(self.engine.url(some))

    def _signal(self):
        if self.engine.settings.sources:
            some = self._some()
            self.engine.signal(some, self.now)
            self.touched |= set(self.engine.url(some))

    def _ask(self):
        some = self._some(3)
        self.engine.request(some, self.now)
        self.touched |= set(self.engine.url(some))

    def rows(self):
        """The rows that a store has: of pages touched since the moment, as they are now."""
        known = self.engine.addresses.known(sorted(self.touched))
        saved = self.engine.rows(known[known >= 0])
        return {**saved, "hosts": self.engine.rows()["hosts"]}


def columns(engine):
    """What is known of pages, by URL."""
    rows = engine.rows()
    order = np.argsort(rows["url"])
    found = {name: np.asarray(rows[name], np.float64)[order] for name in COLUMNS}
    return {"url": [rows["url"][j] for j in order], **found}


def beliefs(engine):
    """The belief about each page's rate, by URL."""
    ids = engine.ids()
    return dict(zip(engine.url(ids), engine.beliefs.belief.gamma[ids].tolist(), strict=True))


def picks(engine, now, n=40):
    """The URLs that an engine picks, nothing being recorded."""
    engine.clocks.publish(engine.scheduler, now)
    return [engine.url(engine.pick(now + 60.0 * k, 2)) for k in range(n)]


@pytest.mark.parametrize("seed", range(12))
def test_the_rows_saved_since_bring_a_state_up_to_date(seed, tmp_path):
    settings = {"siblings": seed % 3 == 0, "sources": int(seed % 4 == 1), "host_spacing": 1.0 if seed % 2 else None}
    life = Life(seed, **settings)
    for _ in range(int(life.rng.integers(5, 80))):
        life.step()
    life.engine.pick(life.now, 3)  # leases are over after a restart
    write_checkpoint(life.engine, tmp_path / "one", {"mark": "a"})
    fits, life.touched, life.removed = life.engine.beliefs.fits, set(), []
    for _ in range(int(life.rng.integers(0, 60))):
        life.step()
    continued, built = read_checkpoint(tmp_path / "one"), Engine.restore(life.engine.rows(), life.now)
    take_later(continued, life.rows(), life.removed, life.now)
    for engine in (continued, built):
        engine.scheduler._check()
        engine.eligibility._check()
    found, expected = columns(continued), columns(built)
    for side in (found, expected):  # a wait that is over is none: the engine forgets it at the next pick
        side["wait_until"] = np.where(side["wait_until"] > life.now, side["wait_until"], -np.inf)
    assert found["url"] == expected["url"] == sorted(life.engine.url(life.engine.ids()))
    for name in COLUMNS:
        np.testing.assert_array_equal(found[name], expected[name], name)
    if life.engine.beliefs.fits != fits:
        assert continued.beliefs.refit_at <= continued.beliefs.crawls, "a fit is due"
    elif not settings["sources"]:
        assert beliefs(continued) == beliefs(built) == beliefs(life.engine)
        if not settings["siblings"]:  # what clocks did lately is in a state, not in rows
            assert picks(continued, life.now) == picks(built, life.now)


def test_what_clocks_did_lately_is_in_a_checkpoint(tmp_path):
    life = Life(0)
    for _ in range(120):
        life.step()
    write_checkpoint(life.engine, tmp_path / "one", {})
    continued, built = read_checkpoint(tmp_path / "one"), Engine.restore(life.engine.rows(), life.now)
    clocks = [engine.clocks.arrays for engine in (life.engine, continued, built)]
    assert clocks[0].found.sum() > 0.0
    np.testing.assert_array_equal(clocks[0].found[: len(clocks[1].found)], clocks[1].found)
    assert clocks[2].found.sum() == 0.0
    assert same(life.engine.state(), continued.state())
    assert picks(continued, life.now) == picks(life.engine, life.now)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    life, path = Life(1, n=8), tmp_path / "one"
    write_checkpoint(life.engine, path, {"mark": "a"})
    assert checkpoint_about(path)["mark"] == "a"
    whole, rng = path.read_bytes(), np.random.default_rng(2)
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(DamagedFileError):
            read_tree(path)
    n_found = 0
    for place in rng.integers(0, len(whole), 60).tolist():
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            engine = read_checkpoint(path)
        except DamagedFileError:
            n_found += 1
        else:  # between two arrays
            assert same(engine.state(), life.engine.state())
    assert n_found > 40


def test_a_checkpoint_of_another_format_or_version_is_refused(tmp_path):
    life, path = Life(1, n=8), tmp_path / "one"
    for about, why in (({"format": 2}, "format 2"), ({"source": "other"}, "another version")):
        write_checkpoint(life.engine, path, about)
        with pytest.raises(DamagedFileError, match=why):
            checkpoint_about(path)
    path.write_bytes(b"something else" * 10)
    with pytest.raises(DamagedFileError):
        read_about(path)


def test_trees_come_back_as_they_were(tmp_path):
    tree = {
        "a": [1, 2.5, None, True, "x"],
        "texts": ["ä", "", "b\ud800"],
        "inside": {"rows": np.array([(1, 2.0)], [("k", "i4"), ("x", "f8")]), "none": np.zeros((0, 3), np.int8)},
        "number": np.float64(-np.inf),
    }
    with (tmp_path / "one").open("wb") as file:
        write_tree(file, tree, {"of": "test"})
    assert read_about(tmp_path / "one") == {"of": "test"}
    assert same(read_tree(tmp_path / "one"), {**tree, "number": -np.inf})
