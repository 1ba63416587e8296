"""Differences of texts: complete, short, and bounded in time."""

import random

import pytest

from recrawl.crawl.detect.diff import diff
from recrawl.crawl.detect.visible import visible_text

WIDE = {"context": 10**6, "most": 10**6}


def both(found):
    """The two texts that a difference was made of."""
    old = [line.text for line in found.lines if line.sign in "- "]
    return old, [line.text for line in found.lines if line.sign in "+ "]


@pytest.mark.parametrize("letters", ["ab", "abcdefgh"])
def test_both_texts_can_be_read_from_a_difference_and_it_is_shortest(letters):
    rng = random.Random(5)
    for _ in range(300):
        old, new = ([rng.choice(letters) for _ in range(rng.randrange(12))] for _ in range(2))
        found = diff("\n".join(old), "\n".join(new), **WIDE)
        assert both(found) == (([], []) if old == new else (old, new))
        assert found.left_out == 0
        assert (found.removed + found.added) == shortest(old, new)


def shortest(old, new):
    """Edits of the shortest difference, by the table of the longest common subsequence."""
    table = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, one in enumerate(old):
        for j, two in enumerate(new):
            table[i + 1][j + 1] = table[i][j] + 1 if one == two else max(table[i][j + 1], table[i + 1][j])
    return len(old) + len(new) - 2 * table[-1][-1]


def test_only_what_changed_is_shown_with_its_context():
    lines = [f"line {k}" for k in range(100)]
    other = [*lines[:50], "other", *lines[51:]]
    found = diff("\n".join(lines), "\n".join(other))
    assert [(line.sign, line.text) for line in found.lines] == [
        ("…", ""),
        (" ", "line 49"),
        ("-", "line 50"),
        ("+", "other"),
        (" ", "line 51"),
        ("…", ""),
    ]
    assert (found.added, found.removed, found.left_out) == (1, 1, 0)
    assert diff("a\nb", " a \n\n b ").lines == (), "blanks and empty lines are no difference"


def test_a_difference_is_cut():
    found = diff("", "\n".join(str(k) for k in range(100)), most=10)
    assert (len(found.lines), found.added, found.left_out) == (10, 100, 90)
    assert found.as_text().endswith("… 90 further changed lines")


def test_a_long_line_is_split_into_sentences_and_words():
    words = " ".join(f"word{k}." if k % 10 == 9 else f"word{k}" for k in range(100))
    found = diff(words, words.replace("word55", "other"))
    assert (found.added, found.removed) == (1, 1)
    assert max(len(line.text) for line in found.lines) < 100
    assert max(len(line.text) for line in diff("", "x" * 2000).lines) <= 400


def test_texts_that_have_nothing_in_common_take_no_longer():
    """Lines beyond a number of edits count as replaced: long texts are not compared wholly."""
    rng = random.Random(1)
    old, new = ("\n".join(rng.choice("ab") for _ in range(20_000)) for _ in range(2))
    found = diff(old, new)
    assert found.added + found.removed > 0
    assert both(diff("q\n" + old + "\nend", "q\n" + new + "\nend", **WIDE))[0][0] == "q"


def test_the_text_of_a_page_has_a_line_for_each_block():
    page = "<title>Tea</title><h1>Tea\n shop</h1><ul><li>green <b>3.00</b><li>black</ul>a<br>b<script>x<p>y</script>"
    assert visible_text(page, lines=True) == "Tea\nTea shop\ngreen 3.00\nblack\na\nb"
    assert visible_text(page) == "Tea Tea shop green 3.00 black a b"
    assert visible_text("a\x00b<p>c", lines=True) == "a b\nc"
