"""The charset of a body."""

import codecs
from encodings.aliases import aliases

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.http.charset import decode
from recrawl.crawl.http.fetched import Fetched

HTML = "text/html"


def meta(charset):
    return f'<html><head><meta charset="{charset}"></head>'


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("ä".encode(), HTML, "ä"),
        ("ä".encode("latin-1"), "text/html; charset=iso-8859-1", "ä"),
        ("ä".encode("latin-1"), 'text/html; Charset="ISO-8859-1"', "ä"),
        ("ä".encode("latin-1"), "text/html;charset='latin1'", "ä"),
        ("ä".encode("latin-1"), HTML, "ä"),
        (b"\x93quoted\x94 \x80", "text/html; charset=iso-8859-1", "“quoted” €"),
        (b"\x93", "text/html; charset=us-ascii", "“"),
        (codecs.BOM_UTF8 + "ä".encode(), "text/html; charset=iso-8859-1", "ä"),
        (codecs.BOM_UTF16_LE + "ä".encode("utf-16-le"), "text/html; charset=utf-8", "ä"),
        (codecs.BOM_UTF16_BE + "ä".encode("utf-16-be"), HTML, "ä"),
        ("äöü".encode("utf-16-le"), "text/html; charset=utf-16", "äöü"),
        ("plain".encode("utf-16-le"), HTML, "plain"),
        ("plain".encode("utf-16-be"), HTML, "plain"),
        ("日本".encode("shift_jis"), "text/html; charset=Shift_JIS", "日本"),
        ("日本".encode("euc_jp"), "text/html; charset=EUC-JP", "日本"),
        ("日本".encode("iso2022_jp"), "text/html; charset=ISO-2022-JP", "日本"),
        ("中文".encode("gbk"), "text/html; charset=gb2312", "中文"),
        ("中文".encode("big5"), "text/html; charset=Big5", "中文"),
        ("한국".encode("euc_kr"), "text/html; charset=euc-kr", "한국"),
        ("Привет".encode("cp1251"), "text/html; charset=windows-1251", "Привет"),
        ("Привет".encode("koi8_r"), "text/html; charset=koi8-r", "Привет"),
        ("ไทย".encode("cp874"), "text/html; charset=tis-620", "ไทย"),
        ("ğ".encode("cp1254"), "text/html; charset=iso-8859-9", "ğ"),
        (b"a\xffb", "text/html; charset=utf-8", "a\ufffdb"),
        ("日".encode("shift_jis")[:1], "text/html; charset=shift_jis", "\ufffd"),
        (b"", HTML, ""),
        (b"", "", ""),
    ],
)
def test_charsets(body, kind, text):
    assert decode(body, kind) == text


@pytest.mark.parametrize(
    "declaration",
    [
        meta("windows-1251"),
        "<META CHARSET = windows-1251>",
        '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">',
        "<!-- --><meta content='text/html;charset=windows-1251' http-equiv=content-type>",
        '<?xml version="1.0" encoding="windows-1251"?>',
    ],
)
def test_declared_in_the_document(declaration):
    assert decode((declaration + "Привет").encode("cp1251"), HTML).endswith("Привет")


def test_the_header_is_believed_before_the_document():
    assert decode((meta("koi8-r") + "Привет").encode("cp1251"), "text/html; charset=cp1251").endswith("Привет")


def test_the_document_is_believed_where_the_header_names_nothing_known():
    assert decode((meta("cp1251") + "Привет").encode("cp1251"), "text/html; charset=nonsense").endswith("Привет")


def test_a_declaration_of_utf_16_that_can_be_read_is_wrong():
    assert decode((meta("utf-16") + "ä").encode(), HTML).endswith("ä")


def test_a_declaration_far_down_is_not_looked_for():
    assert decode(b" " * 5000 + (meta("cp1251") + "Привет").encode("cp1251"), HTML).endswith("Ïðèâåò")


@pytest.mark.parametrize(
    "charset",
    ["zip", "zlib", "hex", "base64", "rot13", "rot_13", "undefined", "idna", "punycode", "unicode_escape",
     "raw_unicode_escape", "utf-7", "mbcs", "oem", "bz2", "uu", "quopri", "charmap", "palmos", "",
     "\x00", "a" * 39, "..", "../../x"],
)  # fmt: skip
def test_what_is_no_charset_of_the_web_is_not_used(charset):
    body = b"a+AGE-\\u0041 x\xe4"
    for kind in (f"text/html; charset={charset}", f'text/html; charset="{charset}"'):
        assert decode(body, kind) == "a+AGE-\\u0041 xä"
    assert decode(meta(charset).encode() + body, HTML).endswith("a+AGE-\\u0041 xä")


@given(
    st.binary(max_size=200), st.text(max_size=40), st.sampled_from(["", "text/html; charset=", 'text/html;charset="'])
)
def test_any_bytes_under_any_name_are_text(body, name, before):
    fetched = Fetched("http://a.example/", "http://a.example/", 200, 0.0, 0.0, {"content-type": before + name}, body)
    fetched.text().encode("utf-8")


@given(
    st.binary(max_size=100),
    st.sampled_from(sorted(set(aliases.values()))),
)
def test_every_codec_python_has(body, codec):
    decode(body, f"text/html; charset={codec}").encode("utf-8")


def test_names_that_come_are_not_remembered():
    import encodings

    before = len(encodings._cache)
    for n in range(100):
        decode(b"x", f"text/html; charset=unknown-{n}")
    assert len(encodings._cache) == before
