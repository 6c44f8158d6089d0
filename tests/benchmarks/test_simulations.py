"""What the simulations of docs/studies/statistics.md count."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.leaderboard.cross_fitting import CrossFit, cross_fit
from benchmarks.leaderboard.results import adjust_for_choice
from benchmarks.studies.simulations import (
    groups,
    printed_power,
    sample_size,
    undeclared_groups,
)
from benchmarks.studies.simulations.__main__ import find_simulations, run_simulation
from benchmarks.studies.simulations.page import (
    PAGE,
    RESULTS,
    Result,
    format_result,
    format_table,
    read_result,
    table_name,
    write_result,
    write_table,
)
from benchmarks.studies.simulations.promise import Estimate, Promise, Side
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison import Comparison
from fusion_bench.stats.comparison_family import compare_family
from fusion_bench.stats.values import Pair

TOY = Result(
    name="toy",
    title="A coin",
    description="Thrown.",
    draws=200,
    promises=(
        Promise("fair", "heads", 10, 200, 0.025, "at most"),
        Promise("unfair", "heads", 150, 200),
    ),
    estimates=(Estimate("fair", "heads", 0.5, 0.01),),
)


@pytest.mark.parametrize(
    ("count", "runs", "limit", "side", "holds"),
    [
        (10, 200, 0.025, "at most", True),  # the greatest count of 200 that holds
        (11, 200, 0.025, "at most", False),
        (0, 200, 0.025, "at most", True),
        (150, 200, 0.8, "at least", True),
        (140, 200, 0.8, "at least", False),
        (200, 200, 0.8, "at least", True),
        (3, 4, None, "none", None),
    ],
)
def test_a_promise_holds_where_its_interval_reaches_the_good_side(
    count: int, runs: int, limit: float | None, side: Side, holds: bool | None
) -> None:
    assert Promise("d", "e", count, runs, limit, side).holds is holds


def test_results_and_tables_are_written(tmp_path: Path) -> None:
    assert read_result(write_result(TOY, tmp_path)) == TOY
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- simulation: toy -->\n<!-- /simulation: toy -->\nb\n", "utf-8")
    write_table(TOY, page)
    assert format_result(TOY) in page.read_text("utf-8")
    table = (tmp_path / table_name(TOY)).read_text("utf-8")
    assert table == format_table(TOY)
    assert "fair,heads,10,200" not in table
    assert "fair,heads,200,0.0500," in table
    assert "not held: " not in format_result(TOY)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_the_page_shows_the_committed_results(path: Path) -> None:
    result = read_result(path)
    assert format_result(result) in PAGE.read_text("utf-8")
    assert PAGE.with_name(table_name(result)).read_text("utf-8") == format_table(result)


def test_numbers_of_queries_have_the_promised_power_at_toy_size() -> None:
    result = run_simulation("sample_size", sample_size, draws=8)
    assert len(result.promises) > 20
    assert {each.side for each in result.promises} == {"at least"}
    assert {each.runs for each in result.promises} <= set(range(1, 9))
    assert sum(each.count for each in result.promises) > 100


def test_the_next_sample_shows_a_printed_difference_at_toy_size() -> None:
    promises = printed_power.run(draws=6, sizes=(60,))
    shown = {each.design: each for each in promises if "next sample" in each.event}
    assert set(shown) == {f"{name}, 60 queries" for name in printed_power.DESIGNS}
    assert all(each.runs == 6 for each in shown.values())
    assert shown["normal, 60 queries"].count >= 3
    assert any(each.event == "N is right" for each in promises)


def test_every_simulation_has_a_title_a_description_and_a_place_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    for name, module in find_simulations().items():
        assert module.TITLE
        assert module.DESCRIPTION
        assert f"<!-- simulation: {name} -->" in page


QUERIES = 60
NAMES = [f"q{n}" for n in range(QUERIES)]
FOLDS = np.arange(QUERIES) % 2


def compare(values: FloatArray) -> Comparison:
    [row] = compare_family([Pair.from_arrays(values, keys=NAMES)])
    return row


NOTHING = np.zeros(QUERIES)


def fit(differences: FloatArray, offset: FloatArray = NOTHING, flips: int = 199) -> CrossFit:
    return cross_fit(differences, FOLDS, NAMES, flips=flips, offset=offset)


def test_the_flips_of_the_whole_procedure_decide() -> None:
    rng = np.random.default_rng(1)
    clear = fit(0.1 + 0.05 * rng.normal(size=(5, QUERIES)))
    row = compare(clear.values)
    assert row.answer == "better"
    [kept] = adjust_for_choice([row], [clear.null[1:].tolist()])
    assert kept.answer == "better"
    assert kept.low > 0
    [lost] = adjust_for_choice([row], [[1.1 * row.difference / row.standard_error] * 199])
    assert lost.answer == "not shown"
    assert lost.low < 0 < row.low
    assert lost.p == 1.0


def test_a_null_is_answered_in_five_percent_by_the_adjustment_alone() -> None:
    """Two folds, 50 trials with a common part."""
    rng, draws, shown = np.random.default_rng(3), 400, 0
    for _ in range(draws):
        trials = 2 * rng.normal(size=QUERIES) + rng.normal(size=(50, QUERIES))
        null = np.abs(fit(trials, rng.normal(size=QUERIES), flips=99).null)
        shown += bool(null[0] >= np.sort(null)[-5])
    assert 0 < shown <= 0.075 * draws


def test_an_offset_is_flipped_with_the_trials() -> None:
    """Trials against the default, and the default against the baseline: as one difference."""
    rng = np.random.default_rng(5)
    offset = rng.normal(size=QUERIES) + 0.5
    alone = fit(np.zeros((1, QUERIES)), offset, flips=99)
    assert alone.values.tolist() == offset.tolist()
    t = offset.mean() / (offset.std(ddof=1) / np.sqrt(QUERIES))
    assert alone.null[0] == pytest.approx(t)
    assert alone.null[1:].std() == pytest.approx(1, abs=0.3)


def test_a_rival_chooses_by_itself() -> None:
    rng = np.random.default_rng(6)
    first, second = 0.4 + rng.normal(size=(2, 4, QUERIES))
    offset = rng.normal(size=QUERIES)
    pair = cross_fit(first, FOLDS, NAMES, flips=9, offset=offset, rival=second)
    apart = [fit(each, flips=9).values for each in (first, second)]
    assert pair.values == pytest.approx(offset + apart[0] - apart[1])


@pytest.mark.parametrize(
    ("position", "groups_left", "withheld"), [(0, 200, 2), (1, 100, 0), (2, 140, 0), (3, 200, 2)]
)
def test_the_default_joins_what_is_identical_and_withholds_the_rest(
    monkeypatch: pytest.MonkeyPatch, position: int, groups_left: int, withheld: int
) -> None:
    design = undeclared_groups.DESIGNS[position]
    drawn = groups.draw_dataset(
        np.random.default_rng(4), design.originals, identical=design.identical
    )
    names = [query.group or query.id for query in drawn.queries.values()]
    assert len(set(names)) == groups_left if design.identical else groups_left >= 190
    monkeypatch.setattr(undeclared_groups, "DESIGNS", (design,))
    counts = {each.event: each.count for each in undeclared_groups.run(draws=2)}
    assert counts["ship is withheld"] == withheld
    if withheld:
        assert counts["ships by default"] == 0
