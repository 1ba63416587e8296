"""How a page's own crawls take over from its prior: error of the believed rate after some crawls, by prior.

python experiments/predict/takeover.py
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from cold import Known, crawled, group_priors, predicted

from recrawl.estimate import Columns, GammaPrior, Observations, posterior_moments
from recrawl.simulate import Trace
from recrawl.simulate.shop.settings import COLUMNS, shop_settings
from recrawl.simulate.shop.shop import Shop

CRAWLS = (0, 1, 2, 4, 8, 16, 32, 64, 128)
EVERY = 3.0  # days between crawls of a cold page
N_KNOWN, N_COLD, PAST = 20_000, 2_000, 60


def main() -> None:
    """A shop that stands still, so that each offer has one rate to be found."""
    shop = Shop(N_KNOWN + N_COLD, shop_settings("shop-steady"), seed=11)
    days = list(shop.days(PAST))
    rate = days[0].rates.change
    offer, at = (np.concatenate([getattr(day.changes, name) for day in days]) for name in ("offer", "at"))
    order = np.lexsort((at, offer))
    offset = np.concatenate([[0], np.cumsum(np.bincount(offer, minlength=len(shop)))])
    url = shop.offers.url()
    whole = Trace(0.0, float(PAST), offset=offset, changed_at=at[order], url=url)
    cut = replace(
        whole,
        offset=offset[: N_KNOWN + 1],
        changed_at=whole.changed_at[: offset[N_KNOWN]],
        url=url[:N_KNOWN],
        importance=1.0,
        created_at=-np.inf,
        deleted_at=np.inf,
    )
    rng = np.random.default_rng(3)
    columns = {**shop.offers.metadata(), "url": url}
    known = Known(*crawled(cut, rng, 4.0), url[:N_KNOWN], {name: column[:N_KNOWN] for name, column in columns.items()})
    cold = {name: column[N_KNOWN:] for name, column in columns.items()}
    by_metadata, _ = predicted(known, cold, Columns(categories=COLUMNS))
    priors = {
        "own crawls alone": GammaPrior.hours(1.0),
        **group_priors(known, cold["url"]),
        "predictor, metadata": by_metadata,
    }
    truth = rate[N_KNOWN:]
    outcome = rng.random((N_COLD, max(CRAWLS))) < -np.expm1(-truth[:, None] * EVERY)
    rows = []
    for n in CRAWLS:
        seen = Observations(np.arange(N_COLD + 1) * n, np.full(N_COLD * n, EVERY), outcome[:, :n].ravel())
        error = {
            name: float(np.mean((np.log(posterior_moments(seen, prior).mean) - np.log(truth)) ** 2))
            for name, prior in priors.items()
        }
        rows.append({"crawls": n, "error": error})
        print(n, {name: round(value, 3) for name, value in error.items()}, flush=True)
    (Path(__file__).parent / "takeover.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
