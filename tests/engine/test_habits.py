"""What users of the library rely on: visible keywords, canonical URLs, pages by URL, results in notebooks."""

import inspect
import re
import typing
from dataclasses import fields
from xml.etree import ElementTree

import numpy as np
import pytest

from recrawl import Engine, Pages, ParameterError, solve
from recrawl.engine import EngineOptions
from recrawl.engine.settings import Settings

DAY = 86400.0


def test_keywords_are_visible_to_type_checkers():
    kept = inspect.signature(Engine.__init__).parameters["settings"]
    assert kept.kind is inspect.Parameter.VAR_KEYWORD
    hints = typing.get_type_hints(Engine.__init__)
    assert typing.get_origin(hints["settings"]) is typing.Unpack
    assert typing.get_args(hints["settings"]) == (EngineOptions,)
    options, settings = typing.get_type_hints(EngineOptions), typing.get_type_hints(Settings)
    assert options == {name: kind for name, kind in settings.items() if name != "budget"}
    assert [field.name for field in fields(Settings)] == ["budget", *options]


def test_a_wrong_keyword_is_named():
    with pytest.raises(ParameterError, match="half_live"):
        Engine(1.0, half_live=3.0)


def test_urls_are_canonical():
    engine = Engine(1.0)
    ids = engine.add(["HTTPS://A.example:443/x/../y", "https://a.example/y", " https://a.example/y#z "], 0.0)
    assert ids.tolist() == [0, 0, 0]
    assert engine.url([0]) == ["https://a.example/y"]
    assert engine.id("https://A.EXAMPLE/y").tolist() == [0]
    with pytest.raises(ParameterError, match="no http or https URL"):
        engine.add(["https:///nowhere"], 0.0)
    assert len(engine) == 1


def test_other_names_stay_as_they_are():
    engine = Engine(1.0)
    names = ["page:3", "Casks/Alfred", "httpbin", "a//b/../c"]
    assert engine.url(engine.add(names, 0.0)) == names
    assert Engine(1.0, canonical_urls=False).add(["http://A/", "http://a/"], 0.0).tolist() == [0, 1]


def test_a_page_can_be_explained_by_its_url():
    engine = Engine(1.0)
    engine.add(["https://a.example/", "https://b.example/"], 0.0, fetched_at=0.0)
    assert engine.explain("https://B.example", 60.0) == engine.explain(1, 60.0)
    with pytest.raises(ParameterError, match="not among the pages"):
        engine.explain("https://c.example/", 60.0)


def drawn(thing):
    """The HTML of a result, checked to be well-formed; its texts."""
    html = thing._repr_html_()
    root = ElementTree.fromstring(f"<div>{html}</div>")
    assert root.find("table") is not None
    assert any(part.tag.endswith("svg") for part in root.iter())
    assert not re.search(r"nan|inf\b", html)
    return " ".join(text for text in root.itertext())


def test_results_are_tables_and_drawings_in_notebooks():
    engine = Engine(1.0)
    evil = "<script>alert(1)</script>&"
    ids = engine.add([evil, *(f"https://a.example/{k}" for k in range(20))], 0.0, fetched_at=0.0)
    engine.record(ids, DAY, changed=np.arange(21) % 2 == 0)
    engine.signal(ids[:1], DAY + 5.0)
    found = engine.explain(0, 2 * DAY)
    assert evil in drawn(found)
    assert "<script>" not in found._repr_html_()
    assert "never fetched" in drawn(engine.explain(int(engine.add("https://new.example/", 2 * DAY)[0]), 2 * DAY))
    assert "90% interval" in drawn(engine.forecast(1.0))
    assert "<Engine: 22 pages, 21 with a copy" in repr(engine)


@pytest.mark.parametrize("rates", [[0.1, 3.0, 1.0], [1.0], [1.0, 1.0], [1e-6, 500.0] * 50])
def test_a_plan_in_a_notebook(rates):
    plan = solve(Pages(rates), 1.0)
    text = drawn(plan)
    assert f"{len(rates)}, of which {plan.n_never} are never crawled" in text
