"""Lists whose end is better than their beginning."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_bench.checks.lists import BothOrders, measure_both_orders
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run

QUERIES, DOCUMENTS = 30, 40
QRELS = Qrels.from_dict({f"q{q}": {f"d{q % 7}": 1, f"d{q % 5 + 10}": 1} for q in range(QUERIES)})


def measured(sign: float, *, queries: int = QUERIES, noise: float = 0.0) -> BothOrders | None:
    rng = np.random.default_rng(1)
    ranked = {
        f"q{q}": {
            f"d{d}": sign * (d in (q % 7, q % 5 + 10)) + noise * float(rng.normal()) + 1e-6 * d
            for d in range(DOCUMENTS)
        }
        for q in range(queries)
    }
    runs = align(QRELS, [Run.from_dict("a", ranked)])
    return measure_both_orders(runs, runs.ranks[0])


@pytest.mark.parametrize(
    ("sign", "noise", "is_reversed"), [(1.0, 0.0, False), (-1.0, 0.3, True), (0.0, 1.0, False)]
)
def test_only_a_list_that_is_better_from_its_end_is_reversed(
    sign: float, noise: float, is_reversed: bool
) -> None:
    both = measured(sign, noise=noise)
    assert both is not None
    assert both.is_reversed is is_reversed


def test_both_means() -> None:
    good, bad = measured(1.0), measured(-1.0)
    assert good is not None
    assert bad is not None
    assert good.as_read == pytest.approx(1.0)
    assert bad.backwards == pytest.approx(1.0)
    assert (good.backwards, bad.as_read) == (0.0, 0.0)


def test_few_queries_show_nothing() -> None:
    assert measured(-1.0, queries=4) is None
    assert measured(-1.0, queries=5) is not None
