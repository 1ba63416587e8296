"""Mistakes that the comparison with the twins would find: each is made in the source, and must be found."""

import signal

import pytest
from draws import EXACT

from model import mutants

FRESH, SIGNALS = "kernels/fresh.py", "kernels/signals.py"
MUTATIONS = [  # (file, text, its replacement, the mistake)
    ("signals.py", "np.log1p(true_rate / false_rate)", "-np.log1p(true_rate / false_rate)", "sign of κ"),
    ("signals.py", "np.log1p(true_rate / false_rate)", "np.log(1.0 + true_rate / false_rate)", "κ without log1p"),
    ("pages.py", "self.recall) + self.false_rate", "self.recall)", "γ without ν"),
    ("kernels/pages.py", "offset = alpha * elapsed", "offset = change_rate * elapsed", "Δ for α in the exponent"),
    (
        SIGNALS,
        "_SATURATED:\n            return 1.0 / change_rate",
        "_SATURATED:\n            return 1.0 / alpha",
        "α for Δ in the limit",
    ),
    (SIGNALS, "while i <= count and i < terms", "while i <= count - 1.0 and i < terms", "last term dropped"),
    (SIGNALS, "i < terms and alpha", "i <= terms and alpha", "one term too many"),
    (SIGNALS, "1.0 if i == 0.0 else math.exp(-i * kappa)", "1.0", "terms not discounted by e^{−iκ}"),
    (SIGNALS, "math.log1p(alpha / gamma)", "math.log(1.0 + alpha / gamma)", "a share that loses its digits"),
    (SIGNALS, "offset_x + (n - i) * per_signal", "offset_x - i * per_signal", "signals so far forgotten"),
    (SIGNALS, "a + 9.0 * math.sqrt(a) + 40.0", "a + 3.0 * math.sqrt(a) + 4.0", "band begins too late"),
    (SIGNALS, "part <= 1e-17 * total", "part <= 1e-6 * total", "band cut too early"),
    (SIGNALS, "term * y <= 1e-17 * total", "term * y <= 1e-7 * total", "wrong bound of the tail"),
    (SIGNALS, "ratio * ratio > 36.0", "ratio * ratio > 6.0", "linear too early"),
    (SIGNALS, " + 0.5 * kappa * (gamma * kappa / drift)", "", "constant of the asymptote dropped"),
    (SIGNALS, "second - drift * third", "second + drift * third", "sign in the linear regime"),
    (SIGNALS, "(1 / 12 - gap * gap * (1 / 720", "(1 / 24 - gap * gap * (1 / 720", "Euler–Maclaurin coefficient"),
    (SIGNALS, "c0 = -1 / 3 + eta", "c0 = -1 / 4 + eta", "coefficient of Temme's expansion"),
    (FRESH, "    0.5,\n    1 / 6,", "    0.5,\n    1 / 7,", "series of the value"),
    (
        "kernels/fresh.py",
        "total = (1.0 - total * x) / k",
        "total = (1.0 + total * x) / k",
        "sign in the harmonic series",
    ),
    (FRESH, "total += (k - 1) * term", "total += k * term", "series of the age value"),
    (
        "kernels/fresh.py",
        "d, power = power - shape * d",
        "d, power = power + shape * d",
        "powers of the posterior value",
    ),
    (FRESH, "if shape < 2.0:", "if shape < 2e9:", "posterior value by a difference of near equals"),
    (
        "kernels/fresh.py",
        "math.expm1(math.log1p(x) - shape",
        "math.expm1(x - shape",
        "posterior value beyond its powers",
    ),
    (FRESH, "level = -math.log1p(-y)", "level = -math.log(1.0 - y)", "inverse without log1p"),
    (FRESH, "0.333333333333365,", "0.3333333,", "start of the inverse"),
    ("kernels/rates.py", "+ _EULER - 1.0 + 1.0 / x", "+ _EULER - 1.0", "asymptote of the mean penalty"),
    ("kernels/pages.py", "math.lgamma(size + 1.0) - used", "-used", "several sources without their orders"),
]


@pytest.fixture(scope="module")
def wanted():
    """The figures to compare, with what their twins say."""
    return [(figure, twin()) for _, figure, twin in mutants.probes()]


@pytest.fixture
def _no_endless_loop():
    def stop(*_):
        raise ArithmeticError("takes too long")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_the_source_as_it_is_passes(wanted):
    with mutants.loaded() as kernels:
        assert mutants.worst(kernels, wanted) <= EXACT


@pytest.mark.usefixtures("_no_endless_loop")
@pytest.mark.parametrize(("file", "old", "new", "why"), MUTATIONS, ids=[mutation[-1] for mutation in MUTATIONS])
def test_a_mistake_is_found(wanted, file, old, new, why):
    with mutants.loaded(file, old, new) as kernels:
        assert mutants.worst(kernels, wanted) > EXACT, why


def test_a_mutation_of_text_that_is_gone_fails():
    with pytest.raises(KeyError, match="no longer holds"), mutants.loaded(FRESH, "no such text", ""):
        pass
