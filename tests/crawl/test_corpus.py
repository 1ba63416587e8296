"""The corpus of page sequences: what each mode says of them, against floors that were set once."""

import json
from collections import Counter

import pytest

from .corpus_judge import CORPUS, MODES, judged, sequences

FLOORS = json.loads((CORPUS / "floors.json").read_text())


def test_the_corpus_is_whole():
    found = sequences()
    assert len(found) >= 100
    assert len({one["name"] for one in found}) == len(found)
    labels = Counter(label for one in found for label in one["labels"])
    assert labels["changed"] >= 50
    assert labels["unchanged"] >= 50
    assert labels["flapping"] >= 10
    files = {path.name for path in CORPUS.iterdir() if path.name.count(".") == 2}
    named = {f"{one['name']}.{k + 1}.{one['kind']}" for one in found for k in range(len(one["labels"]) + 1)}
    assert files == named


@pytest.mark.parametrize(("part", "mode"), [(part, mode) for part in FLOORS for mode in FLOORS[part]])
def test_precision_and_recall_keep_their_floors(part, mode):
    found = judged(mode, None if part == "all" else part)
    for name, floor in FLOORS[part][mode].items():
        assert found[name] >= floor, f"{mode}, {part}: {name}; {found['misses']}"


def test_every_mode_has_a_floor():
    assert set(FLOORS["all"]) == set(MODES)


def test_the_default_is_more_precise_than_text_and_misses_little_more():
    """What the default is for: of what it calls a change, far more is one."""
    text, main = judged("text"), judged("main")
    assert main["changed_precision"] > text["changed_precision"] + 0.3
    assert main["changed_recall"] > text["changed_recall"] - 0.08
