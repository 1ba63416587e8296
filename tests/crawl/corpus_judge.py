"""Precision and recall of a detector on the corpus."""

import json
import sys
from collections import Counter
from pathlib import Path

from recrawl.crawl.detect.detector import Detection, detector_for, same, tag
from recrawl.crawl.http.fetched import Fetched
from recrawl.store.protocol import Copy, Outcome

CORPUS = Path(__file__).parent / "corpus"
TYPES = {"html": "text/html; charset=utf-8", "json": "application/json", "xml": "application/xml", "txt": "text/plain"}
MODES = ("raw", "text", "main", "css", "json")


def sequences():
    """All sequences with their labels."""
    return json.loads((CORPUS / "labels.json").read_text())


def look(name, kind, number):
    """A page of the corpus, as fetched."""
    body = (CORPUS / f"{name}.{number}.{kind}").read_bytes()
    return Fetched("http://a.example/", "http://a.example/", 200, 0.0, 0.0, {"content-type": TYPES[kind]}, body)


def detection_of(sequence, mode):
    """How a mode looks at a sequence; None where it has nothing to look for."""
    if mode not in ("css", "json"):
        return Detection(mode)
    return Detection(mode, sequence[mode]) if mode in sequence else None


def said_of(sequence, detection):
    """What is said of each step, by the way a crawler goes: the copy, its digest and what was there lately."""
    detector, copy, said = detector_for(detection), None, []
    for number in range(1, len(sequence["labels"]) + 2):
        fetched = look(sequence["name"], sequence["kind"], number)
        digest = tag(detector) + detector.digest(fetched)
        if copy is None:
            copy = Copy.first(Outcome("http://a.example/", 0.0, digest=digest))
            continue
        word = "unchanged" if same(detector, copy.digest, digest) else "flapping" if copy.seen(digest) else "changed"
        said.append(word)
        copy = copy.after(Outcome("http://a.example/", 0.0, changed=word == "changed", digest=digest))
    return said


def judged(mode, part=None):
    """Counts of (label, said), the misses by name, and precision and recall of changes and of flapping."""
    counts, misses = Counter(), []
    for sequence in sequences():
        detection = detection_of(sequence, mode)
        if detection is None or (part is not None and sequence["part"] != part):
            continue
        for step, (label, said) in enumerate(zip(sequence["labels"], said_of(sequence, detection), strict=True), 1):
            counts[label, said] += 1
            if label != said:
                misses.append(f"{sequence['name']}, step {step}: {label}, said {said}")
    return {"steps": sum(counts.values()), **shares(counts, "changed"), **shares(counts, "flapping"), "misses": misses}


def shares(counts, word):
    """Precision and recall of one word; None where there is nothing to be right or wrong about."""
    right = counts[word, word]
    said = sum(n for (_, one), n in counts.items() if one == word)
    true = sum(n for (one, _), n in counts.items() if one == word)
    return {f"{word}_precision": right / said if said else None, f"{word}_recall": right / true if true else None}


def main():
    """Print all figures, and what the default gets wrong."""
    for part in ("seen", "held", None):
        for mode in MODES:
            found = judged(mode, part)
            misses = "\n".join(found.pop("misses") if mode == "main" else [])
            rounded = {key: value if value is None else round(value, 3) for key, value in found.items()}
            sys.stdout.write(f"{part or 'all'} {mode} {rounded}\n{misses}\n")


if __name__ == "__main__":
    main()
