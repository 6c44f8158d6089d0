"""The front of quality against effort, as a table, in sentences and drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from fusion_bench.report.page import Table
from fusion_bench.report.tuning.findings import tuning_findings
from fusion_bench.report.tuning.pareto_plot import draw
from fusion_bench.report.tuning.pareto_table import best, cheap, findings, sources, table
from fusion_bench.report.tuning.tuning_records import Difference, Front, RerankerEffort
from tests.report.tuning.cases import front, record


def column(found: Table, header: str) -> list[str]:
    at = [one.header for one in found.columns].index(header)
    return [row.cells[at] for row in found.rows]


def changed(points: dict[int, dict[str, Any]], **more: Any) -> Front:  # noqa: ANN401
    """The front with some points changed, by their depth."""
    whole = front()
    own = tuple(p.model_copy(update=points.get(p.depth, {})) for p in whole.points)
    return whole.model_copy(update={"points": own, **more})


def everywhere(**what: Any) -> Front:  # noqa: ANN401
    return changed({point.depth: what for point in front().points})


def line(axes: Axes, label: str) -> list[tuple[float, float]]:
    (found,) = [one for one in axes.lines if one.get_label() == label]
    xy: Any = found.get_xydata()
    return [(float(x), float(y)) for x, y in xy]


def test_the_table_shows_what_is_efficient_and_the_default_wherever_it_stands() -> None:
    found = table(record(), front())
    assert column(found, "rerank depth") == ["0", "10", "50", "60"]
    assert column(found, "") == ["", "", "default, off the front", "chosen"]
    assert column(found, "cost of 1,000 queries") == ["0", "0.02", "0.1", "0.12"]
    assert column(found, "seconds a query") == ["0", "0.1", "0.5", "0.6"]
    assert column(found, "p95 seconds")[-1] == "1.2"
    assert column(found, "held out: - best")[1] == "-0.0030 [-0.0130, +0.0070]"


def test_columns_of_what_is_not_known_are_left_out_and_rerankers_named() -> None:
    two = (RerankerEffort(reranker="ce"), RerankerEffort(reranker="small"))
    bare = everywhere(cost=None, seconds=None, slow=None).model_copy(
        update={"efforts": two, "axes": ("candidates",)}
    )
    found = table(record(), bare)
    assert [one.header for one in found.columns] == [
        "reranker",
        "rerank depth",
        "candidates a query",
        "nDCG@10, tuning",
        "held-out",
        "held out: - default",
        "held out: - best",
        "",
    ]
    assert column(found, "reranker") == ["none", "ce", "ce", "ce"]
    assert sum("neither price nor time is known" in note for note in found.notes) == 2


def test_the_best_and_the_cheapest_that_is_nearly_as_good() -> None:
    whole = front()
    assert best(whole).depth == 60
    assert cheap(whole, 0.005).depth == 10
    assert cheap(whole, 0.001).depth == 60
    flat = changed({10: {"cost": 0.12, "seconds": 0.3}})
    assert cheap(flat, 0.005).depth == 60, "of equally dear ones the better"
    said = " ".join(findings(record(), changed({10: {"seconds": 0.3}})))
    assert "takes 50.0 % of its latency and 16.7 % of its cost" in said
    level = changed({10: {"value": 0.56}})
    assert best(level).depth == 10, "of equally good ones the cheaper"


def test_sentences_say_what_less_effort_loses() -> None:
    said = " ".join(findings(record(), front()))
    assert "Depth 10 loses 0.0030 held out (-0.0030 [-0.0130, +0.0070])" in said
    assert "(depth 60) and takes 16.7 % of its latency and cost" in said
    assert "with depth 50, the front reaches with depth 10, 20.0 % of its latency and cost" in said
    assert any(said in one.text for one in tuning_findings(record(front=front())))


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ({10: {"value": 0.54}}, "The best of the front needs depth 60: on the tuning queries"),
        ({0: {"value": 0.6}, 10: {"efficient": False}, 60: {"efficient": False}}, "at no depth"),
        (
            {10: {"over_best": Difference(mean=0.01, low=None, high=None)}},
            "Depth 10 loses nothing held out (+0.0100 n/a)",
        ),
    ],
)
def test_other_fronts_say_other_things(points: dict[int, dict[str, Any]], said: str) -> None:
    found = Front.model_validate(changed(points).model_dump())
    assert said in " ".join(findings(record(), found))


def test_a_default_on_the_front_is_not_told_to_take_less() -> None:
    found = changed({50: {"efficient": True, "value": 0.5581}, 10: {"value": 0.52}})
    assert "What the default reaches" not in " ".join(findings(record(), found))


def test_each_number_says_where_it_is_from_and_what_the_other_source_says() -> None:
    (said,) = sources(front())
    assert said.startswith("ce (cohere/rerank-v3.5): cost from its ledger, 2.5 per 1,000")
    assert "declared and not used: 2 per 1,000 candidates; say 'prefer: declared'" in said
    assert "time as declared, 0.01 s a candidate (its ledger says 0.08 s a query" in said
    assert "100 queries, 100 calls of up to 50 documents, up to 8 at once" in said
    own = RerankerEffort(reranker="mine", cost="declared", declared_price=1.0)
    (said,) = sources(front(efforts=(own,)))
    assert said == "mine: cost as declared, 1 per 1,000 candidates."


def test_a_front_that_was_cut_short_says_so_and_not_that_the_search_was() -> None:
    whole = record(front=front(interrupted=True), interrupted=True)
    warnings = [one.text for one in tuning_findings(whole) if one.tone == "warning"]
    assert sum("interrupted" in text for text in warnings) == 1
    assert any(text.startswith("The search for quality against effort") for text in warnings)


def test_the_picture_joins_efficient_points_and_marks_default_and_choice() -> None:
    figure = draw(record(), front())
    assert [axes.get_xlabel() for axes in figure.axes] == [
        "candidates reranked a query",
        "cost of 1,000 queries",
        "seconds a query",
    ]
    first, second = figure.axes[:2]
    efficient = [(0.0, 0.5), (10.0, 0.557), (60.0, 0.56)]
    assert line(first, "front, tuning queries") == efficient
    assert [x for x, _ in line(second, "front, tuning queries")] == [0.0, 0.02, 0.12]
    held_out = [y for _, y in line(first, "the same, held out")]
    assert held_out == pytest.approx([y - 0.01 for _, y in efficient])
    assert line(first, "default") == [(50.0, 0.53)]
    assert line(first, "chosen") == [(60.0, 0.56)]
    ticks = np.asarray(first.get_xticks()).tolist()
    assert ticks == [0.0, 10.0, 20.0, 50.0]


def test_effort_that_is_not_known_gets_no_panel_and_equal_effort_a_plain_axis() -> None:
    figure = draw(record(), everywhere(cost=None, seconds=None))
    assert len(figure.axes) == 1
    flat = draw(record(), changed({d: {"cost": 2.0} for d in (10, 20, 50, 60)}))
    assert [axes.get_xscale() for axes in flat.axes] == ["symlog", "linear", "symlog"]
    wide = draw(record(), changed({10: {"cost": 1e-9}, 60: {"cost": 1e3}}))
    ticks = np.asarray(wide.axes[1].get_xticks())
    assert len(ticks) >= 3
    assert ticks[-1] == 1e3


def test_two_rerankers_have_two_marks_and_candidates_are_not_joined_across_them() -> None:
    two = (RerankerEffort(reranker="ce"), RerankerEffort(reranker="small"))
    points = {10: {"reranker": "small"}, 20: {"reranker": "small"}}
    candidates, cost = draw(record(), changed(points, efforts=two)).axes[:2]
    assert line(candidates, "small") == [(10.0, 0.557)]
    assert line(candidates, "ce") == [(0.0, 0.5), (60.0, 0.56)]
    steps = [one for one in candidates.lines if one.get_drawstyle() == "steps-post"]
    found = [np.asarray(one.get_xdata()).tolist() for one in steps]
    assert found == [[0.0, 60.0], [0.0, 10.0]]
    assert [x for x, _ in line(cost, "front, tuning queries")] == [0.0, 0.02, 0.12]
