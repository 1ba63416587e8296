"""Content codings, whole, broken and made to burst."""

import gzip
import tracemalloc
import zlib
from contextlib import suppress

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.http.encoding import BadCoding, Body, TooLarge

try:
    from compression import zstd
except ImportError:
    from backports import zstd


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACK = {
    "identity": bytes,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


def unpack(coding, data, *, limit=1 << 20, piece=1000):
    body = Body(coding, limit)
    for start in range(0, len(data), piece):
        body.feed(data[start : start + piece])
    return body.whole()


@pytest.mark.parametrize("coding", sorted(PACK))
@given(data=st.binary(max_size=3000), piece=st.integers(1, 4000))
def test_what_was_packed_comes_out(coding, data, piece):
    assert unpack(coding, PACK[coding](data), piece=piece) == data


@given(data=st.binary(max_size=3000), piece=st.integers(1, 50))
def test_deflate_without_its_frame(data, piece):
    packed = raw_deflate(data)
    if packed[0] & 0x0F != 8:
        assert unpack("deflate", packed, piece=piece) == data


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_several_members(coding):
    assert unpack(coding, PACK[coding](b"one") + PACK[coding](b"two"), piece=3) == b"onetwo"


def test_padding_after_the_end():
    assert unpack("gzip", gzip.compress(b"one") + bytes(10)) == b"one"
    assert unpack("deflate", zlib.compress(b"one") + b"more") == b"one"


def test_several_codings_are_undone_last_first():
    data = b"text " * 1000
    assert unpack("gzip, br", brotli.compress(gzip.compress(data))) == data
    assert unpack("GZIP , identity,zstd", zstd.compress(gzip.compress(data))) == data


@pytest.mark.parametrize("coding", ["gzip, gzip, gzip, gzip", "rot13", "compress", "gzip;q=1", "\x00"])
def test_codings_that_are_not_known(coding):
    with pytest.raises(BadCoding):
        Body(coding, 100)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_body_that_breaks_off(coding):
    packed = PACK[coding](bytes(range(256)) * 20)
    with pytest.raises(BadCoding):
        unpack(coding, packed[: len(packed) // 2])


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
@given(data=st.binary(min_size=1, max_size=300))
def test_any_bytes_are_a_body_or_an_error(coding, data):
    with suppress(BadCoding, TooLarge):
        unpack(coding, data, piece=7)


@pytest.mark.parametrize("coding", sorted(PACK))
def test_no_body_is_an_empty_body(coding):
    assert unpack(coding, b"") == b""


@pytest.mark.parametrize("coding", sorted(PACK))
def test_the_limit_is_exact(coding):
    assert len(unpack(coding, PACK[coding](bytes(5000)), limit=5000)) == 5000
    with pytest.raises(TooLarge):
        unpack(coding, PACK[coding](bytes(5001)), limit=5000)


def bomb(coding):
    """300 MB of zeros, packed, or packed twice."""
    zeros = bytes(1 << 20)
    if coding == "br":
        packer = brotli.Compressor(quality=1)
        return b"".join(packer.process(zeros) for _ in range(300)) + packer.finish()
    packer = zstd.ZstdCompressor() if coding == "zstd" else zlib.compressobj(9, wbits=31)
    once = b"".join(packer.compress(zeros) for _ in range(300)) + packer.flush()
    return gzip.compress(once) if coding == "gzip, gzip" else once


@pytest.mark.slow
@pytest.mark.parametrize("coding", ["gzip", "gzip, gzip", "br", "zstd"])
def test_bombs_stop_at_the_limit(coding):
    data = bomb(coding)
    assert len(data) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            unpack(coding, data, limit=2 << 20, piece=1 << 16)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_windows_beyond_what_http_allows_are_refused():
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    packed = packer.compress(b"x" * 1000) + packer.flush()
    with pytest.raises(BadCoding):
        unpack("zstd", packed)
