"""What systems take: candidates, and where their price and time are known from."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_bench.experiment.settings import DeclaredCost, EffortSettings
from fusion_bench.tune.rerank_cost import count_candidates, reranker_costs, system_cost
from tests.tune.cases import aligned
from tests.tune.pareto.test_cost_model import meta
from tests.tune.problems import BLEND, system

#: 100 queries of 50 candidates at .002 each, 60 ms.
LEDGER = meta(searches=100, cost=0.2, call_ms={"p50": 60, "p95": 120})


def test_candidates_are_counted_query_by_query() -> None:
    runs = aligned(6, depth=8)
    assert count_candidates(system(), runs) == {}
    (counts,) = count_candidates(system(blend=BLEND), runs).values()
    assert counts.tolist() == [5] * 6
    (counts,) = count_candidates(system(blend={**BLEND, "depth": 50}), runs).values()
    assert counts.tolist() == [8] * 6, "no more than there are"
    small = {**BLEND, "always_rerank": False, "skip_limit": 8}
    (counts,) = count_candidates(system(blend=small), runs).values()
    assert counts.tolist() == [0] * 6, "few enough to be left alone"


def test_each_query_type_is_counted_by_its_own_blend() -> None:
    runs = aligned(6, depth=8, types=["a", "b"] * 3)
    blend = {"by_query_type": {"a": {**BLEND, "depth": 2}, "hybrid": "none"}}
    counts = count_candidates(system(blend=blend), runs)["sharp"]
    assert counts.tolist() == [2, 0] * 3
    known = reranker_costs(["sharp"], EffortSettings(price=3.0), {})
    assert system_cost(system(blend=blend), runs, known).cost == pytest.approx(3.0)


def test_the_ledger_wins_where_there_is_one() -> None:
    toll = reranker_costs(["sharp"], EffortSettings(price=1.0, seconds=0.5), {"sharp": LEDGER})[
        "sharp"
    ]
    assert (toll.source.cost, toll.source.seconds) == ("ledger", "ledger")
    assert toll.source.declared_price == 1.0
    assert toll.source.recorded_price == pytest.approx(0.04)
    assert (toll.source.queries, toll.source.largest_call) == (100, 50)
    found = system_cost(system(blend=BLEND), aligned(6), {"sharp": toll})
    assert found.cost == pytest.approx(2.0), "1,000 queries at .002 each, whatever the depth"
    assert found.seconds == pytest.approx(0.06)
    assert found.slow == pytest.approx(0.12)


def test_what_is_declared_wins_where_it_is_told_to() -> None:
    effort = EffortSettings(price=1.0, prefer="declared")
    toll = reranker_costs(["sharp"], effort, {"sharp": LEDGER})["sharp"]
    assert (toll.source.cost, toll.source.seconds) == ("declared", "ledger")
    found = system_cost(system(blend=BLEND), aligned(6), {"sharp": toll})
    assert found.cost == pytest.approx(5.0)
    assert found.seconds == pytest.approx(0.06), "no time is declared"


def test_a_reranker_has_its_own_numbers_and_the_general_ones_for_the_rest() -> None:
    effort = EffortSettings(price=1.0, seconds=0.1, rerankers={"sharp": DeclaredCost(price=4.0)})
    assert effort.declared_for("sharp") == DeclaredCost(price=4.0, seconds=0.1)
    found = reranker_costs(["sharp", "other"], effort, {})
    assert [one.source.declared_price for one in found.values()] == [4.0, 1.0]
    assert found["sharp"].cost is not None
    assert found["sharp"].cost(50) == pytest.approx(0.2)
    assert found["sharp"].slow is None


def test_without_price_and_time_only_candidates_are_known() -> None:
    toll = reranker_costs(["sharp"], EffortSettings(), {})["sharp"]
    found = system_cost(system(blend=BLEND), aligned(6), {"sharp": toll})
    assert (found.cost, found.seconds, found.slow) == (None, None, None)
    assert (toll.source.cost, toll.source.seconds) == (None, None)
    assert found.candidates == 5.0
    nothing = system_cost(system(), aligned(6), {"sharp": toll})
    assert (nothing.cost, nothing.seconds, nothing.candidates) == (0.0, 0.0, 0)


def test_a_mean_over_queries_of_different_sizes() -> None:
    toll = reranker_costs(["sharp"], EffortSettings(price=2.0), {})
    runs = aligned(6, depth=8, types=["a", "b", "b"] * 2)
    blend = {"by_query_type": {"a": {**BLEND, "depth": 2}, "hybrid": {**BLEND, "depth": 8}}}
    found = system_cost(system(blend=blend), runs, toll)
    assert found.counts == {"sharp": pytest.approx(6.0)}
    assert found.cost == pytest.approx(2.0 * np.mean([2, 8, 8]))
