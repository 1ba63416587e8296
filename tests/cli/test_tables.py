"""Tables of pages: what is read from CSV and Parquet, what is refused and how, and what is written."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from pyarrow import parquet

from recrawl.cli.shared.files import tables
from recrawl.cli.shared.files.columns import read_pages
from recrawl.cli.shared.files.tables import check_writable, read_table, write_table
from recrawl.errors import ParameterError


def test_bom_crlf_quotes_and_blank_lines(table):
    path = table('\ufeffurl , change_rate\r\n"a,b",0.5\r\n\r\n"c ""d""", 2 \r\n\r\n\r\n')
    read = read_table(path)
    assert read.names == ["url", "change_rate"]
    assert read.text("url") == ["a,b", 'c "d"']
    assert read_pages(read).change_rate.tolist() == [0.5, 2.0]


def test_all_columns(table):
    header = "change_rate,importance,cost,evidence,recall,false_rate,recall_2,precision_2,note"
    pages = read_pages(read_table(table(f"{header}\n2,3,4,5,.5,.25,.4,.8,x\n1,0,1,inf,0,0,0,1,y\n")))
    assert pages.importance.tolist() == [3, 0]
    assert pages.cost.tolist() == [4, 1]
    assert pages.evidence.tolist() == [5, math.inf]
    assert pages.recall.tolist() == [[0.5, 0.4], [0, 0]]
    np.testing.assert_allclose(pages.false_rate, [[0.25, 0.2], [0, 0]], rtol=1e-15)


def test_empty_cells_of_optional_columns_take_the_default(table):
    pages = read_pages(read_table(table("change_rate,cost,evidence,recall,precision\n2,,,,\n1,3,9,.5,.5\n")))
    assert pages.cost.tolist() == [1, 3]
    assert pages.evidence.tolist() == [math.inf, 9]
    assert pages.recall.tolist() == [0, 0.5]
    assert pages.false_rate.tolist() == [0, 0.5]


def test_hosts_come_from_host_or_url(table):
    named = table("change_rate,host,url\n1,A.example,https://b.example/x\n")
    assert read_pages(read_table(named), hosts=True).host.tolist() == ["a.example"]
    derived = table("change_rate,url\n1,https://user@B.example:8080/x?y\n1,c.example/z\n")
    assert read_pages(read_table(derived), hosts=True).host.tolist() == ["b.example", "c.example"]
    assert read_pages(read_table(derived)).host is None


BAD = [
    ("", "is empty"),
    ("\n\n", "is empty"),
    ("change_rate\n", "no rows"),
    ("rate\n1\n", "column change_rate is missing; the columns are rate"),
    ("change_rate\n1\nabc\nx\n", "column change_rate, row 2: 'abc' is not a number"),
    ("change_rate,importance\n1,1\n1,\n", "column importance, row 2: is empty"),
    ("change_rate\n1\n\n1\nnan\n", "column change_rate, row 3: nan must be finite and at least 0"),
    ("change_rate\n-1\n", "column change_rate, row 1: -1 must be finite and at least 0"),
    ("change_rate\ninf\n", "column change_rate, row 1: inf must be finite and at least 0"),
    ("change_rate,importance\n1,1\n1,-2\n", "column importance, row 2: -2 must be"),
    ("change_rate,importance\n1,0\n1,0\n", "column importance is 0 in every row"),
    ("change_rate,cost\n1,0\n", "column cost, row 1: 0 must be finite and above 0"),
    ("change_rate,evidence\n1,nan\n", "column evidence, row 1: nan must be above 0"),
    ("change_rate,recall,false_rate\n1,0,0\n1,1.5,0\n", "column recall, row 2: 1.5 must lie between 0 and 1"),
    ("change_rate,recall,false_rate\n1,1,-1\n", "column false_rate, row 1: -1 must be"),
    ("change_rate,recall_3,precision_3\n1,1,2\n", "column precision_3, row 1: 2 must lie between 0 and 1"),
    ("change_rate,recall,precision\n1,.5,\n", "column precision, row 1: 0 must be above 0 where recall is"),
    ("change_rate,recall,precision\n1,.5,1e-310\n", "column precision, row 1: 1e-310 must be above 0"),
    ("change_rate,recall\n1,.5\n", "a signal source needs recall and one of precision and false_rate"),
    ("change_rate,precision_2\n1,.5\n", "this one has precision_2"),
    ("change_rate,recall,precision,false_rate\n1,.5,.5,.5\n", "one of precision and false_rate"),
    ("change_rate,recall,recall_1,false_rate\n1,1,1,1\n", "columns recall and recall_1 mean the same source"),
    ("change_rate,change_rate\n1,1\n", "two columns named 'change_rate'"),
    ("change_rate,url\n1,x\n1\n", "row 2 has 1 cells, the header has 2"),
    ('change_rate\n"1\n', "is not CSV"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_csv_names_file_column_and_first_bad_row(table, text, message):
    path = table(text)
    with pytest.raises(ParameterError) as caught:
        read_pages(read_table(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_unreadable_files(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path, tmp_path / "none.parquet"):
        with pytest.raises(ParameterError, match="cannot be read"):
            read_table(path)
    binary = tmp_path / "pages.csv"
    binary.write_bytes(b"change_rate\n\xff\xfe\n")
    with pytest.raises(ParameterError, match="UTF-8"):
        read_table(binary)
    broken = tmp_path / "pages.parquet"
    broken.write_bytes(b"PAR1 and no more")
    with pytest.raises(ParameterError, match="is not Parquet"):
        read_table(broken)


def test_hosts_are_asked_for_but_absent(table):
    with pytest.raises(ParameterError, match=r"column host \(or url\) is missing"):
        read_pages(read_table(table("change_rate\n1\n")), hosts=True)
    with pytest.raises(ParameterError, match="column url, row 2: '/only/a/path' has no host"):
        read_pages(read_table(table("change_rate,url\n1,x.example\n1,/only/a/path\n")), hosts=True)


def test_parquet_types_and_nulls(tmp_path):
    path = tmp_path / "pages.parquet"
    columns = {"change_rate": [1, 2], "importance": pa.array([1.5, 2.5], pa.float32()), "cost": [None, 2.0]}
    parquet.write_table(pa.table({**columns, "evidence": ["3", None]}), path)
    pages = read_pages(read_table(path))
    assert pages.change_rate.tolist() == [1, 2]
    assert pages.importance.tolist() == [1.5, 2.5]
    assert pages.cost.tolist() == [1, 2]
    assert pages.evidence.tolist() == [3, math.inf]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, None], "row 2: is empty"),
        ([1.0, math.nan], "row 2: nan must"),
        (["a", "1"], "row 1: 'a' is not"),
    ],
)
def test_bad_parquet_names_column_and_row(tmp_path, column, message):
    path = tmp_path / "pages.parquet"
    parquet.write_table(pa.table({"change_rate": column}), path)
    with pytest.raises(ParameterError, match=f"column change_rate, {message}"):
        read_pages(read_table(path))


def test_parquet_is_read_in_pieces(tmp_path, monkeypatch):
    """Few rows at a time give the rows of the whole; a page that counts need not be in every piece."""
    monkeypatch.setattr(tables, "_PIECE", 3)
    path = tmp_path / "pages.parquet"
    columns = {"change_rate": [float(k) for k in range(8)], "importance": [0.0] * 7 + [1.0]}
    parquet.write_table(pa.table({"url": list("abcdefgh"), **columns}), path)
    pieces = list(tables.read_pieces(path, without=("url",)))
    assert [len(piece) for piece in pieces] == [3, 3, 2]
    pages = [read_pages(piece, whole=False) for piece in pieces]
    assert np.concatenate([some.change_rate for some in pages]).tolist() == columns["change_rate"]
    parquet.write_table(pa.table({"change_rate": [1.0, 2.0, 3.0, 4.0, -1.0]}), path)
    with pytest.raises(ParameterError, match="column change_rate, row 5"):
        [read_pages(piece, whole=False) for piece in tables.read_pieces(path)]
    path.write_text("none")
    with pytest.raises(ParameterError, match="is not Parquet"):
        list(tables.read_pieces(path))


@pytest.mark.parametrize("source", ["csv", "parquet"])
@pytest.mark.parametrize("target", ["csv", "tsv", "parquet"])
def test_what_is_written_keeps_every_column(tmp_path, source, target):
    first = tmp_path / "pages.csv"
    first.write_text("url,change_rate,tag,crawl_rate,cost\nhttps://a.example/é,0.1,007,9,\nb,0.2,,9,2\n")
    if source == "parquet":
        write_table(read_table(first), tmp_path / "pages.parquet", {})
    out = tmp_path / f"out.{target}"
    given = read_table(tmp_path / f"pages.{source}")
    read_pages(given)
    write_table(given, out, {"crawl_rate": np.array([0.5, 0.0]), "interval": np.array([2.0, math.nan])})
    back = read_table(out)
    assert back.names == ["url", "change_rate", "tag", "cost", "crawl_rate", "interval"]
    assert back.text("url") == ["https://a.example/é", "b"]
    assert back.text("tag") == ["007", ""]
    assert back.numbers("change_rate").tolist() == [0.1, 0.2]
    assert back.numbers("cost", default=1.0).tolist() == [1.0, 2.0]
    assert back.numbers("crawl_rate").tolist() == [0.5, 0.0]
    assert back.text("interval") == ["2.0", ""]


@settings(max_examples=examples(50))
@given(rates=st.lists(st.floats(0, 1e300), min_size=1, max_size=20), kind=st.sampled_from(["csv", "parquet"]))
def test_rates_survive_writing_and_reading_bit_by_bit(tmp_path_factory, rates, kind):
    folder = tmp_path_factory.mktemp("tables")
    (folder / "in.csv").write_text("change_rate\n" + "\n".join(map(repr, rates)) + "\n")
    table = read_table(folder / "in.csv")
    write_table(table, folder / f"out.{kind}", {"crawl_rate": read_pages(table).change_rate})
    assert read_table(folder / f"out.{kind}").numbers("crawl_rate").tolist() == rates


def test_outputs_are_refused_before_the_work(tmp_path):
    with pytest.raises(ParameterError, match="suffix"):
        check_writable(tmp_path / "rates.xlsx")
    with pytest.raises(ParameterError, match="does not exist"):
        check_writable(tmp_path / "none" / "rates.csv")


def test_without_pyarrow_parquet_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ParameterError, match=r"pip install 'recrawl\[data\]'"):
        read_table(tmp_path / "pages.parquet")
    with pytest.raises(ParameterError, match="pyarrow"):
        tables.check_writable(tmp_path / "rates.parquet")
