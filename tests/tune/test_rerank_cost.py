"""What reranking costs, query by query, by the ledger or as declared."""

import math
from typing import Any

import numpy as np
import pytest

from fusion_bench.experiment.settings import DeclaredCost, EffortSettings
from fusion_bench.io.provenance import ListMeta
from fusion_bench.tune.rerank_cost import (
    count_candidates,
    latency_model,
    max_call_size,
    price_model,
    reranker_costs,
    system_cost,
)
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, system


def meta(depth: int = 50, provider: dict[str, Any] | None = None, **ledger: Any) -> ListMeta:  # noqa: ANN401
    """A list of 100 queries, 50 candidates each, one call a query."""
    known: dict[str, Any] = {"calls": 100, "queries_answered": 100, "documents": 5000}
    return ListMeta(
        list_sha256="",
        created="",
        dataset="d",
        system="s",
        depth=depth,
        score_space="unit",
        asked="p/m",
        providers={},
        settings={"providers": [{"batch": 100, "concurrency": 4, **(provider or {})}]},
        ledger=known | ledger,
    )


def test_a_search_unit_is_billed_whole() -> None:
    bill = price_model(meta(searches=100, cost=0.2))
    assert bill is not None
    assert [bill(n) for n in (0, 1, 50)] == pytest.approx([0.0, 0.002, 0.002])
    assert bill(51) == pytest.approx(0.004), "that more fit into one was never seen"


def test_calls_that_take_several_units_share_their_price_out() -> None:
    two = price_model(meta(100, searches=200, cost=0.4, documents=10_000, largest_call=100))
    assert two is not None
    assert [two(n) for n in (50, 51, 100)] == pytest.approx([0.002, 0.004, 0.004])
    few = price_model(meta(searches=104, cost=0.208, largest_call=50))
    assert few is not None
    assert few(50) == pytest.approx(0.00208), "a few long documents: the mean price of a call"


def test_units_and_tokens_together() -> None:
    price = {"price": {"per_1000_searches": 2.0, "per_million_tokens": 1.0}}
    bill = price_model(meta(provider=price, searches=100, tokens=500_000, cost=0.7))
    assert bill is not None
    assert bill(10) == pytest.approx(0.002 + 0.001)
    assert bill(50) * 100 == pytest.approx(0.7), "the recorded price at the recorded depth"


def test_no_price_is_not_a_price_of_nothing() -> None:
    assert price_model(meta(cost=0.0)) is None
    own = price_model(meta(cost=0.0, provider={"price": {}}))
    assert own is not None
    assert own(50) == 0.0
    assert price_model(meta(documents=0, cost=1.0)) is None


def test_a_call_takes_what_calls_of_its_size_took_and_never_less_than_the_smallest() -> None:
    rows = [{"documents": 10, "p50": 40, "p95": 80}, {"documents": 30, "p50": 80, "p95": 160}]
    clock = latency_model(meta(by_documents=rows))
    assert clock is not None
    assert [clock(n) for n in (0, 1, 10, 20, 30)] == pytest.approx([0, 0.04, 0.04, 0.06, 0.08])
    assert clock(60) == pytest.approx(0.16), "beyond what was measured in proportion"
    assert clock(10, 0.95) == pytest.approx(0.08)


@pytest.mark.parametrize("rows", [{}, {"calls": 0}, {"call_ms": {"p50": None, "p95": None}}])
def test_a_record_without_calls_tells_no_time(rows: dict[str, Any]) -> None:
    assert latency_model(meta(**rows)) is None


def test_what_is_damaged_is_not_believed() -> None:
    odd = meta(calls="many", documents=math.nan, cost=True, by_documents=[{"documents": 5}])
    odd = odd.model_copy(update={"settings": {"providers": ["x"]}})
    assert price_model(odd) is None
    assert latency_model(odd) is None
    assert max_call_size(odd) == 50
    assert max_call_size(meta(200)) == 100


def test_batches_are_waited_for_together_and_come_in_rounds() -> None:
    """The slowest of some log-normal calls, against drawing them."""
    clock = latency_model(
        meta(
            100,
            calls=400,
            largest_call=32,
            documents=10_000,
            by_documents=[{"documents": 32, "p50": 50, "p95": 100}],
        )
    )
    assert clock is not None
    assert (clock.batch, clock.concurrency) == (32, 4)
    rng = np.random.default_rng(0)
    sigma = math.log(2) / 1.6448536269514722
    drawn = rng.lognormal(math.log(0.05), sigma, (200_000, 4)).max(axis=1)
    assert clock(100) == pytest.approx(np.median(drawn), rel=0.01)
    assert clock(100, 0.95) == pytest.approx(np.quantile(drawn, 0.95), rel=0.01)
    assert clock(33) < clock(100) < 4 * clock(32)
    assert clock(129) > clock(128), "a fifth call waits for a place"


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
