"""Every figure runs, is drawn, has floors, and does not depend on how many processes ran it."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from profiles import few_tuples

from recrawl import ParameterError
from recrawl.reproduce import Workers, choose, figures, reproduce
from recrawl.reproduce.busafekete2025.figures import CHECK_TRUSTED, CHECK_VALUES, POLICIES, baseline
from recrawl.reproduce.figure import Claim, Result, mean_error
from recrawl.reproduce.floors import floors_of, misses
from recrawl.reproduce.han2020 import runs
from recrawl.simulate import contender, simulate
from recrawl.simulate.worlds.population import uniform_pages
from recrawl.simulate.worlds.worlds import World

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
IDS = [
    *(f"busafekete2025/{name}" for name in (*(f"fig{k}" for k in range(2, 15)), "scale")),
    *(
        f"grimes/{name}"
        for name in ("cost-curve", "cost-map", "cost-lines", "unknown-cost", "convergence", "suboptimal")
    ),
    *("grimes/very-stale", "grimes/changed-share"),
    *(f"kolobov2019/fig{k}" for k in (1, 2, 3)),
    *(f"azar2018/fig{k}" for k in (1, 2)),
    *(
        f"han2020/{name}"
        for name in ("fig4", "fig5", "fig6", "table4", "table5", "table6", "greedy", "regret", "shift")
    ),
]


LAID_OUT = ("busafekete2025/fig2", "grimes/cost-map", "kolobov2019/fig1", "azar2018/fig1", "han2020/fig4")


@pytest.fixture
def layout(request, monkeypatch):
    """Only one figure of each paper is laid out, which takes half of the time of a drawing."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if request.node.callspec.params["id"] not in LAID_OUT:
        monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda self, figure: None)


@cache
def tiny(id):
    """A figure's result in its smallest setting. Figures of one paper share its worlds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "prepared", shops)
        return reproduce(figures()[id], "tiny", seed=3)


shops = cache(runs.prepared.__wrapped__)  # all of them, while a full run keeps three


def test_all_ids_are_there():
    assert list(figures()) == IDS


@pytest.mark.slow
@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("id", IDS)
def test_figure_runs_and_is_drawn(id, tmp_path):
    result = tiny(id)
    assert result.claims
    assert len({claim.key for claim in result.claims}) == len(result.claims)
    written = json.loads(result.save(tmp_path).read_text())
    assert written["id"] == id
    assert written["data"]
    result.draw(tmp_path / f"{id}.png")
    assert (tmp_path / f"{id}.png").stat().st_size > 5000


@pytest.mark.slow
@pytest.mark.parametrize("id", IDS)
def test_every_floor_is_a_claim(id):
    floors = floors_of(id, EXPERIMENTS)
    result = tiny(id)
    assert floors
    assert set(floors) <= {claim.key for claim in result.claims}
    assert all(set(floor) <= {"least", "most"} and floor for floor in floors.values())


@pytest.mark.parametrize("id", IDS)
def test_every_setting_has_tasks_with_keys_of_their_own(id):
    figure = figures()[id]
    assert set(figure.settings) == {"tiny", "quick", "full"}
    for setting in figure.settings:
        tasks = figure.tasks(figure.params(setting))
        assert len({json.dumps(task.key) for task in tasks}) == len(tasks) > 0
        assert all(task.seconds > 0 for task in tasks)


@pytest.mark.slow
def test_the_number_of_processes_does_not_matter():
    chosen = ["busafekete2025/fig4", "grimes/very-stale", "kolobov2019/fig3"]
    with Workers(2) as two:
        for id in chosen:
            alone = reproduce(figures()[id], "tiny", seed=5)
            together = reproduce(figures()[id], "tiny", seed=5, workers=two)
            assert (alone.claims, alone.data) == (together.claims, together.data)
            assert reproduce(figures()[id], "tiny", seed=6).data != alone.data


def test_an_interrupted_run_goes_on(tmp_path):
    figure, partial = figures()["kolobov2019/fig1"], tmp_path / "rows.jsonl"
    whole = reproduce(figure, "tiny", seed=1, partial=partial)
    lines = partial.read_text().splitlines()
    partial.write_text("\n".join([*lines[:2], lines[2][:40]]))
    done = []
    again = reproduce(figure, "tiny", seed=1, partial=partial, resume=True, progress=done.append)
    assert again.data == whole.data
    assert len(done) == 2  # what was there, and the one that was cut
    other = []
    reproduce(figure, "tiny", seed=2, partial=partial, resume=True, progress=other.append)
    assert len(other) == 3  # another seed: nothing of it is used


def test_more_repetitions_keep_the_first_ones():
    figure = figures()["kolobov2019/fig1"]
    few, many = (figure.tasks(figure.params("tiny", reps)) for reps in (2, 4))
    draws = [[figure.rng(0, task.key).random() for task in tasks] for tasks in (few, many)]
    assert draws[0] == draws[1][:2]


@pytest.mark.slow
@pytest.mark.parametrize(("m", "reps"), few_tuples([(100, 2), (100, 10), (500, 4)], 1))
def test_check_values(m, reps):
    """Means of 60 instances with horizon 300, made independently; the sd of one instance is .007 to .014."""
    found = {name: [] for name in ("BASELINE", *POLICIES, "CIS, true")}
    for seed in range(reps):
        rng = np.random.default_rng([seed, m])
        pages, true = uniform_pages(m, rng, "noisy"), uniform_pages(m, rng, "proof")
        trace = World("noisy", pages).draw(300.0, rng)
        found["BASELINE"].append(baseline(pages, 100.0))
        for name, policy in POLICIES.items():
            found[name].append(simulate(contender(policy), trace, 100.0).freshness)
        found["CIS, true"].append(
            simulate(contender("trusting"), World("true", true).draw(300.0, rng), 100.0).freshness
        )
    expected = {**CHECK_VALUES[m], "CIS, true": CHECK_TRUSTED[m]}
    allowed = 4 * 0.014 * np.sqrt(1 / reps + 1 / 60)
    for name, value in expected.items():
        assert mean_error(found[name])[0] == pytest.approx(value, abs=allowed), name
    paired = np.array(found["NCIS"]) - np.array(found["GREEDY"])  # within an instance the noise is far smaller
    assert paired.mean() == pytest.approx(expected["NCIS"] - expected["GREEDY"], abs=0.02)


def test_floors_are_compared(tmp_path):
    (tmp_path / "azar2018").mkdir()
    floors = {
        "fig2": {"gap": {"most": 0.1}, "gone": {"least": 0}, "low": {"least": 1, "most": 2}, "kept": {"least": 1}}
    }
    (tmp_path / "azar2018" / "expected.json").write_text(json.dumps(floors))
    claims = [Claim("gap", "", 0.2), Claim("low", "", 0.5), Claim("kept", "", 1.0)]
    lines = misses(Result("azar2018/fig2", "", "tiny", 0, {}, 0.0, claims, {}), tmp_path)
    assert lines == [
        "azar2018/fig2: gap is 0.2, must be at most 0.1",
        "azar2018/fig2: gone has no figure",
        "azar2018/fig2: low is 0.5, must be at least 1, at most 2",
    ]


def test_choice_by_paper_and_near_matches():
    assert [figure.id for figure in choose(["kolobov2019"])] == [
        "kolobov2019/fig1",
        "kolobov2019/fig2",
        "kolobov2019/fig3",
    ]
    assert [figure.id for figure in choose([])] == IDS
    with pytest.raises(ParameterError, match="busafekete2025/fig4"):
        choose(["busafekete/fig4"])
    with pytest.raises(ParameterError, match="see --list"):
        choose(["???"])


def test_the_table_of_results(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    from table import table

    reproduce(figures()["azar2018/fig2"], "tiny").save(tmp_path)
    lines = table(tmp_path).splitlines()
    assert sum("not run yet" in line for line in lines) == len(IDS) - 1
    assert any(line.startswith("| `azar2018/fig2` (tiny) |") and line.endswith("| yes |") for line in lines)
