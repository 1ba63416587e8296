"""Recorded traces: what a window holds, what is refused, and the public files of 18.5 million pages."""

from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from naive.simulate import naive_window
from pyarrow import parquet

from recrawl.errors import ParameterError
from recrawl.estimate import estimate_change_rate
from recrawl.simulate import bing_chunks, contender, read_bing, read_trace, simulate, world, write_trace
from recrawl.simulate.traces.recorded import epoch

from .small import small_trace

DAY = 86400.0


def page(page_id, key, created=0.0, deleted=None, *, group="g", importance=None, obs=None):
    start, end = obs or (created, 100 * DAY if deleted is None else deleted)
    return {
        "page_id": page_id,
        "key": key,
        "group": group,
        "importance": importance,
        "created": created,
        "deleted": deleted,
        "obs_start": start,
        "obs_end": end,
    }


PAGES = [
    page(0, "stays", importance=4.0),
    page(1, "comes", 50 * DAY, group="G/x"),
    page(2, "goes", 0.0, 70 * DAY, group="g x"),
    page(3, "over before", 0.0, 30 * DAY),
    page(4, "watched late", 0.0, obs=(60 * DAY, 90 * DAY), importance=2.0),
    page(7, "quiet", 0.0, group="g-x", importance=1.0),
]
CHANGES = [(0, 10.0), (0, 45.0), (0, 80.0), (1, 50.0), (1, 51.0), (2, 20.0), (2, 60.0), (3, 12.0), (4, 50.0), (4, 61.0)]


def write(folder, pages=PAGES, changes=CHANGES, **tables):
    """A folder with a trace; times of changes in days."""
    folder.mkdir(exist_ok=True)
    types = {"importance": pa.float64(), "deleted": pa.float64()}
    columns = {name: pa.array([row[name] for row in pages], types.get(name)) for name in pages[0]}
    parquet.write_table(pa.table(columns), folder / "pages.parquet")
    numbers = {"page_id": pa.array([p for p, _ in changes], pa.int32()), "t": [t * DAY for _, t in changes]}
    parquet.write_table(pa.table(numbers), folder / "changes.parquet")
    for name, columns in tables.items():
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def days(column):
    return (np.asarray(column) / DAY).tolist()


def test_a_window_holds_the_lives_and_changes_within_it(tmp_path):
    trace = read_trace(write(tmp_path / "site"), start=40 * DAY, days=50)
    assert days([trace.start, trace.end]) == [40.0, 90.0]
    assert days(trace.created_at) == [40.0, 40.0, 40.0, 50.0, 60.0]
    assert days(trace.deleted_at) == [90.0, 70.0, 90.0, 90.0, 90.0]
    assert [url.rsplit("/")[-1] for url in trace.url] == ["stays", "goes", "quiet", "comes", "watched%20late"]
    assert trace.n_changes.tolist() == [2, 1, 0, 1, 1]
    assert days(trace.changed_at) == [45.0, 80.0, 60.0, 51.0, 61.0]  # a change at creation is none
    assert trace.importance.tolist() == [4.0, 2.0, 1.0, 2.0, 2.0]  # median of 4, 2, 1
    assert trace.group.tolist() == ["g", "g x", "g-x", "G/x", "g"]
    assert len(set(trace.url.tolist())) == 5
    assert len({url.split("/")[2] for url in trace.url.tolist()}) == 4  # groups that look alike stay apart
    assert trace.name == "site"
    assert trace.signals is None


def test_the_last_days_are_the_default_and_warm_days_come_before(tmp_path):
    folder = write(tmp_path / "site")
    last = read_trace(folder, days=30)
    assert days([last.start, last.end]) == [70.0, 100.0]
    warm = read_trace(folder, days=30, warm=20)
    assert days([warm.start, warm.end]) == [50.0, 100.0]
    result = simulate(contender("uniform"), warm, 10 / DAY, count_from=warm.start + 20 * DAY)
    assert 0 <= result.staleness < 1
    assert read_trace(folder, start=date(1970, 1, 11), days=20).start == 10 * DAY
    assert read_trace(folder, start="1970-01-11T00:00+01:00", days=20).start == 10 * DAY - 3600
    assert epoch(5) == 5.0


@pytest.mark.parametrize("seed", range(20))
def test_windows_equal_the_twin(seed, tmp_path):
    rng = np.random.default_rng(seed)
    pages, changes = [], []
    for i in range(15):
        low, high = np.sort(rng.integers(0, 100, 2)).tolist()
        obs = (low * DAY, max(high + rng.integers(-5, 5), low) * DAY)
        pages.append(page(i, f"k{i}", low * DAY, high * DAY if rng.random() < 0.5 else None, obs=obs))
        changes += [(i, t) for t in np.sort(rng.integers(0, 100, 6)).tolist()]
    begin, end = 20 * DAY, 75 * DAY
    pages[0].update(obs_start=0.0, created=0.0, obs_end=100 * DAY, deleted=None)
    trace = read_trace(write(tmp_path / "t", pages, changes), start=begin, days=55)
    expected = naive_window(pages, [(p, t * DAY) for p, t in changes], begin, end)
    assert [url.rsplit("/")[-1] for url in trace.url.tolist()] == [key for key, *_ in expected]
    assert trace.created_at.tolist() == [low for _, low, _, _ in expected]
    assert trace.deleted_at.tolist() == [high for _, _, high, _ in expected]
    assert trace.changed_at.tolist() == [t for *_, inside in expected for t in inside]


def test_only_moved_dates_are_signals(tmp_path):
    moved = {
        "page_id": [2, 0, 0, 0],
        "t": [60 * DAY, 45 * DAY, 80 * DAY, 99.5 * DAY],
        "lastmod": [58 * DAY, None, 79 * DAY, 99 * DAY],
        "lastmod_moved": [True, True, False, True],
    }
    trace = read_trace(write(tmp_path / "a", signals=moved), start=40 * DAY, days=50)
    assert days(trace.signals.at) == [45.0, 60.0]
    assert trace.signals.page.tolist() == [0, 1]
    assert days(trace.signals.changed_at) == [np.inf, 58.0]
    noise = {"page_id": [0, 0], "t": [41 * DAY, 42 * DAY]}
    assert read_trace(write(tmp_path / "b", signals=noise), start=40 * DAY, days=50).signals is None


def test_importance_that_nobody_knows_is_one(tmp_path):
    unknown = [{**row, "importance": None} for row in PAGES]
    assert set(read_trace(write(tmp_path / "a", unknown), days=60).importance.tolist()) == {1.0}
    bare = [{name: cell for name, cell in row.items() if name != "importance"} for row in PAGES]
    assert set(read_trace(write(tmp_path / "b", bare), days=60).importance.tolist()) == {1.0}


def test_pages_that_came_back_have_their_own_urls(tmp_path):
    pages = [page(0, "a b", 0.0, 20 * DAY), page(1, "a b", 30 * DAY), page(2, "a b?2", 0.0)]
    trace = read_trace(write(tmp_path / "t", pages, [(0, 5.0), (1, 50.0)]), start=1 * DAY, days=90)
    assert trace.url.tolist() == ["https://g/a%20b", "https://g/a%20b%3F2", "https://g/a%20b?2"]


def broken(tmp_path, how):
    folder = write(tmp_path / "t")
    if how == "no folder":
        return tmp_path / "none"
    if how == "no changes file":
        (folder / "changes.parquet").unlink()
    elif how == "not parquet":
        (folder / "pages.parquet").write_text("page_id,key")
    elif how == "no column":
        write(folder, [{k: v for k, v in row.items() if k not in ("created", "group")} for row in PAGES])
    elif how == "unknown page":
        write(folder, changes=[*CHANGES, (9, 3.0)])
    elif how == "unsorted":
        write(folder, changes=[(0, 45.0), (0, 10.0)])
    elif how == "unsorted pages":
        write(folder, changes=[(1, 10.0), (0, 45.0)])
    elif how == "nan":
        write(folder, changes=[(0, 45.0), (0, float("nan"))])
    elif how == "null":
        write(folder, [{**PAGES[0], "created": None}, *PAGES[1:]])
    elif how == "twice":
        write(folder, [*PAGES, PAGES[0]])
    elif how == "text":
        write(folder, [{**row, "created": "soon"} for row in PAGES])
    elif how == "negative":
        write(folder, [{**row, "importance": -1.0} for row in PAGES])
    return folder


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("no folder", "pages.parquet: is not there"),
        ("no changes file", "changes.parquet: is not there"),
        ("not parquet", "pages.parquet: is not Parquet"),
        ("no column", "has no column group, created"),
        ("unknown page", "changes.parquet: row 11 is of page 9"),
        ("unsorted", "row 2 is out of order"),
        ("unsorted pages", "row 2 is out of order"),
        ("nan", "column t, row 2: is not a finite number"),
        ("null", "column created, row 1: is not a finite number"),
        ("twice", "page_id 0 is there twice"),
        ("text", "column created does not hold numbers"),
        ("negative", "importance must be finite and at least 0"),
    ],
)
def test_broken_traces_are_refused_in_one_line(how, words, tmp_path):
    with pytest.raises(ParameterError, match=words) as refused:
        read_trace(broken(tmp_path, how), days=60)
    assert "\n" not in str(refused.value)


def test_windows_without_data_are_refused(tmp_path):
    folder = write(tmp_path / "t")
    for window in ({"days": 101}, {"start": 50 * DAY, "days": 51}, {"days": 50, "warm": 60}):
        with pytest.raises(ParameterError, match="was watched from 1970-01-01 to 1970-04-11, asked for is"):
            read_trace(folder, **window)
    with pytest.raises(ParameterError, match="no page changed from 1970-04-02"):
        read_trace(folder, start=91 * DAY, days=5)
    gap = [page(0, "a", 0.0, 10 * DAY), page(1, "b", 50 * DAY)]
    with pytest.raises(ParameterError, match="no page was watched from"):
        read_trace(write(tmp_path / "gap", gap, [(0, 5.0)]), start=20 * DAY, days=5)
    for bad in ({"days": 0}, {"warm": -1}, {"start": "soon"}, {"start": float("nan")}):
        with pytest.raises(ParameterError):
            read_trace(folder, **bad)


def test_a_trace_is_written_and_read_again(tmp_path):
    trace = small_trace(3, n=30)
    write_trace(tmp_path / "new" / "t", trace, unit=DAY)
    again = read_trace(tmp_path / "new" / "t", days=40)
    lived = trace.deleted_at > trace.created_at
    assert days(again.created_at) == pytest.approx(trace.created_at[lived].tolist())
    assert days(again.changed_at) == pytest.approx(trace.changed_at.tolist())
    assert days(again.signals.at) == pytest.approx(trace.signals.at.tolist())
    assert days(again.signals.changed_at) == pytest.approx(trace.signals.changed_at.tolist())
    grouped = world("together", 30).draw(50.0, np.random.default_rng(1))
    write_trace(tmp_path / "g", grouped, unit=DAY)
    assert read_trace(tmp_path / "g", days=50).url.tolist()[-1] == "https://1/29"
    write_trace(tmp_path / "h", read_trace(tmp_path / "g", days=50))
    assert read_trace(tmp_path / "h", days=50).url.tolist() == read_trace(tmp_path / "g", days=50).url.tolist()


def bing_folder(folder, n=25, **replaced):
    """Small files in the published form."""
    rng = np.random.default_rng(1)
    history = [[[round(float(rng.random()), 3), int(rng.random() < 0.4)] for _ in range(i % 6)] for i in range(n)]
    files = {
        "url_urlid_hostid": "".join(f'http://h{i % 3}.example/ü"#{i}\t{i}\t{i % 3}\n' for i in range(n)),
        "host_hostid_isconstrained": "".join(f"http://h{i}.example\t{i}\t{i % 2}\n" for i in range(3)),
        "urlid_imp": "".join(f"{i}\t{10.5 * i}\n" for i in reversed(range(n))),
        "urlid_offset_history": "".join(f"{i}\t{i / 7}\t{history[i]}\n" for i in range(n)),
        "urlid_chrate_compl_obs_hist": "3\t0.25\n7\t1.5\n",
    }
    folder.mkdir(exist_ok=True)
    for name, text in {**files, **replaced}.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder, history


def test_the_public_files_are_read(tmp_path):
    folder, history = bing_folder(tmp_path / "bing")
    bing = read_bing(folder)
    assert bing.url_id.tolist() == list(range(25))
    assert bing.observations.n_crawls.tolist() == [len(pairs) for pairs in history]
    assert bing.observations.interval.tolist() == [gap for pairs in history for gap, _ in pairs]
    assert bing.observations.changed.tolist() == [bool(flag) for pairs in history for _, flag in pairs]
    assert bing.pages.importance.tolist() == [10.5 * i for i in range(25)]
    assert bing.pages.host.tolist() == [i % 3 for i in range(25)]
    assert bing.constrained.tolist() == [i % 3 == 1 for i in range(25)]
    assert bing.first_crawl.tolist() == [i / 7 for i in range(25)]
    rate = estimate_change_rate(bing.observations, "smoothed", day=1.0, level=None).change_rate
    rate[[3, 7]] = [0.25, 1.5]
    assert bing.pages.change_rate.tolist() == rate.tolist()
    assert np.flatnonzero(bing.pages.recall).tolist() == [3, 7]
    assert len(read_bing(folder, 4).pages) == 4
    assert [len(part.pages) for part in bing_chunks(folder, 12, chunk=5)] == [5, 5, 2]


@pytest.mark.parametrize(
    ("replaced", "words"),
    [
        (
            {"urlid_offset_history": "1\t0.5\t[[1, 0]]\n2\t0.5\t[[1, 0], [x, 1]]\n"},
            "history.txt: line 2: a history holds",
        ),
        ({"urlid_offset_history": "1\t0.5\t[[1, 0]]\n2\t0.5\t[[1, 3]]\n"}, "line 2: changed, row 0 is 3"),
        ({"urlid_offset_history": "1\t0.5\t[[1, 0]]\n2\t0.5\t[[1]]\n"}, "line 2: a history is not a list of pairs"),
        ({"urlid_offset_history": "1\t0.5\n"}, "line 1: not enough values"),
        ({"urlid_offset_history": ""}, "has no pages"),
        ({"urlid_imp": "1\tmany\n"}, "urlid_imp.txt: after line 0: could not convert"),
        ({"urlid_imp": "1\t5.0\n"}, "urlid_imp.txt: does not have the number 0"),
        ({"host_hostid_isconstrained": ""}, "does not have the number 0"),
    ],
)
def test_broken_public_files_are_refused(replaced, words, tmp_path):
    folder, _ = bing_folder(tmp_path / "bing", **replaced)
    with pytest.raises(ParameterError, match=words):
        read_bing(folder)


def test_missing_public_files_are_named(tmp_path):
    with pytest.raises(ParameterError, match=r"url_urlid_hostid\.txt: cannot be read"):
        read_bing(tmp_path)
