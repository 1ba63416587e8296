"""The network: the paper's sizes, trained by JAX, run by NumPy, and what it finds."""

import json
from importlib.util import find_spec

import numpy as np
import pytest

from recrawl.errors import ParameterError
from recrawl.estimate import Columns, Predictor, train_predictor
from recrawl.estimate.predict.network import NetworkSettings

# The module of JAX is not imported here: every test process would import it.
pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_spec("jax") is None, reason="there is no JAX")]


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    n = 12_000
    group, number = rng.integers(0, 20, n), rng.normal(size=n)
    number[::17] = np.nan
    expected = rng.normal(-2.0, 1.0, 20)[group] + np.where(np.isnan(number), 0.0, 0.7 * number)
    interval = rng.exponential(2.0, n) + 0.1
    changed = rng.random(n) < -np.expm1(-np.exp(expected) * interval)
    table = {"group": group, "number": number}
    columns = Columns(("number",), ("group",))
    model = train_predictor(
        table,
        interval,
        changed,
        columns,
        at=np.arange(n),
        family="network",
        settings=NetworkSettings(epochs=4, batch=128),
    )
    return model, table, expected


def test_it_has_the_papers_layers(fitted):
    assert [len(b) for b in fitted[0].model.biases] == [256, 128, 64, 1]
    settings = NetworkSettings()
    assert (settings.l1, settings.l2, settings.hidden) == (1e-3, 1e-3, (256, 128, 64))


def test_rates_are_found_again(fitted):
    model, table, expected = fitted
    assert np.corrcoef(model.log_rate(table), expected)[0, 1] > 0.9
    test = model.about["scores"]["test"]
    assert test["auc"] > 0.75
    assert test["calibration_slope"] == pytest.approx(1.0, abs=0.3)


def test_numpy_and_jax_agree(fitted):
    """The forward pass written twice: the trained weights give the same rates in both."""
    import jax.numpy as jnp

    from recrawl.estimate.predict.network import scaled
    from recrawl.estimate.predict.predictor import network_inputs

    model, table, _ = fitted
    net, inputs = model.model, network_inputs(model.features, table)
    x = jnp.concatenate(
        [scaled(inputs.numbers, net.centre, net.width)]
        + [jnp.asarray(e)[inputs.codes[:, k] + 1] for k, e in enumerate(net.embeddings)],
        axis=1,
    )
    for w, b in zip(net.weights[:-1], net.biases[:-1], strict=True):
        x = jnp.maximum(x @ w + b, 0)
    np.testing.assert_allclose(
        net.log_rate(inputs), net.base + np.asarray(x @ net.weights[-1] + net.biases[-1])[:, 0], rtol=1e-4, atol=1e-4
    )


def test_large_penalties_silence_it():
    rng = np.random.default_rng(3)
    n = 3000
    table = {"number": rng.normal(size=n)}
    changed = rng.random(n) < np.where(table["number"] > 0, 0.5, 0.1)
    mute = NetworkSettings(l1=1e5, epochs=2)
    model = train_predictor(table, 1.0, changed, Columns(("number",)), family="network", settings=mute)
    assert all((w == 0).all() for w in model.model.weights)
    assert model.log_rate({"number": [-1.0, 1.0]}).std() == 0


def test_it_is_saved_and_checked(fitted, tmp_path):
    model, table, _ = fitted
    path = tmp_path / "net.json"
    model.save(path)
    again = Predictor.load(path)
    assert again.family == "network"
    np.testing.assert_array_equal(again.log_rate(table), model.log_rate(table))
    whole = json.loads(path.read_text())
    for change in (
        lambda m: m["weights"].pop(),
        lambda m: m["weights"][0].update(shape=[1, 1]),
        lambda m: m["weights"][0].update(data="!"),
        lambda m: m["embeddings"].pop(),
        lambda m: m.pop("centre"),
        lambda m: m["biases"][0].update(m["biases"][1]),
    ):
        broken = json.loads(json.dumps(whole))
        change(broken["model"])
        path.write_text(json.dumps(broken))
        with pytest.raises(ParameterError, match="network"):
            Predictor.load(path)
