"""What the simulations of docs/studies/statistics.md count."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.leaderboard.results import adjust_for_choice
from benchmarks.studies.simulations import (
    cr2,
    first_group,
    groups,
    joint_coverage,
    repeats,
    sample_size,
    skew,
    undeclared_groups,
)
from benchmarks.studies.simulations.__main__ import find_simulations, run_simulation
from benchmarks.studies.simulations.page import (
    PAGE,
    RESULTS,
    Result,
    format_result,
    read_result,
    write_result,
    write_table,
)
from benchmarks.studies.simulations.promise import Estimate, Promise, Side
from fusion_bench.data.ordering import FloatArray
from benchmarks.leaderboard.cross_fitting import CrossFit, cross_fit
from benchmarks.leaderboard.results import adjust_for_choice
from fusion_bench.stats.comparison import Comparison
from fusion_bench.stats.comparison_family import ComparedValues, compare_family
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.max_t import FamilyRow, max_t

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


def test_a_range_is_two_promises() -> None:
    least, most = Promise.from_range("d", "covers", 1900, 2000, 0.93, 0.97)
    assert (least.limit, least.side, most.limit, most.side) == (0.93, "at least", 0.97, "at most")
    assert least.holds
    assert most.holds


@pytest.mark.parametrize(
    ("count", "runs", "limit", "side"),
    [(3, 2, None, "none"), (0, 0, None, "none"), (1, 2, 0.5, "none"), (1, 2, None, "at most")],
)
def test_refuses_impossible_counts(count: int, runs: int, limit: float | None, side: Side) -> None:
    with pytest.raises(ValueError, match="d: "):
        Promise("d", "e", count, runs, limit, side)


def test_results_and_tables_are_written(tmp_path: Path) -> None:
    assert read_result(write_result(TOY, tmp_path)) == TOY
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- simulation: toy -->\n<!-- /simulation: toy -->\nb\n", "utf-8")
    write_table(TOY, page)
    assert format_result(TOY) in page.read_text("utf-8")


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_the_page_shows_the_committed_results(path: Path) -> None:
    assert format_result(read_result(path)) in PAGE.read_text("utf-8")


def test_numbers_of_queries_have_the_promised_power_at_toy_size() -> None:
    result = run_simulation("sample_size", sample_size, draws=8)
    assert len(result.promises) > 20
    assert {each.side for each in result.promises} == {"at least"}
    assert {each.runs for each in result.promises} <= set(range(1, 9))
    assert sum(each.count for each in result.promises) > 100


def test_every_simulation_has_a_title_a_description_and_a_place_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    for name, module in find_simulations().items():
        assert module.TITLE
        assert module.DESCRIPTION
        assert f"<!-- simulation: {name} -->" in page


@pytest.mark.parametrize("kind", skew.FAMILIES)
def test_differences_have_the_mean_that_is_said(kind: str) -> None:
    values = skew.draw_differences(np.random.default_rng(1), kind, 40_000)
    assert values.shape == (skew.FAMILIES[kind], 40_000)
    expected = 0.1 if kind == "gain" else 0.0
    assert values.mean() == pytest.approx(expected, abs=0.005)
    assert values.min() > -1.05


def test_symmetric_answers_stay_and_skewed_ones_go() -> None:
    gains = np.full(40, 0.02) + 0.001 * np.arange(40)
    assert skew.is_kept(gains)
    assert not skew.is_kept(np.append(gains, [-0.3, -0.3]))


@pytest.mark.parametrize("kind", first_group.KINDS)
def test_the_first_system_is_a_best_one_and_differences_have_one_spread(kind: str) -> None:
    means = first_group.true_means(kind, 10)
    assert means[0] == means.max() == 0
    values = first_group.draw_values(np.random.default_rng(1), means, 40_000)
    assert values.mean(axis=1) == pytest.approx(means, abs=0.01)
    assert (values[0] - values[5]).std() == pytest.approx(first_group.SPREAD, rel=0.03)
    assert values[3].std() == pytest.approx(first_group.SD, rel=0.03)


def test_trials_do_not_move_a_fixed_baseline() -> None:
    draws = [
        repeats.draw_repeats(np.random.default_rng(3), sd, is_fixed=True).mean(axis=2)
        for sd in (0.0, 10.0)
    ]
    assert draws[0][0].tolist() == draws[1][0].tolist()
    assert np.abs(draws[0][1:] - draws[1][1:]).min() > 0.01


def test_a_fixed_baseline_is_counted_in_every_run() -> None:
    promise = repeats.run_fixed(0.0, 3, draws=3)
    assert (promise.runs, promise.limit) == (3, 0.07)
    assert promise.design == "sd of trials 0, 3 trials, a fixed baseline"


def test_the_limit_is_at_least_as_wide_as_the_estimate() -> None:
    limit, estimate, ratio = repeats.run_few(2, 40, 0.05, draws=50)
    assert limit.count >= estimate.count
    assert limit.limit == 0.94
    assert ratio.value > 1.2


@pytest.mark.parametrize("kind", joint_coverage.KINDS)
def test_joint_coverage_uses_the_package_s_own_critical_value(kind: str) -> None:
    errors = joint_coverage.draw_errors(np.random.default_rng(2), kind, 5, 25)
    keys = tuple(f"q{i}" for i in range(25))
    joint, alone = joint_coverage.critical_values(errors, keys, seed=3)
    flips = joint_coverage.FLIPS
    for i, effect in enumerate(joint_coverage.EFFECTS):
        rows = [FamilyRow(row + effect, keys) for row in errors]
        family = max_t(rows, seed=3, first_draws=flips, most_draws=flips)
        assert joint[i] == pytest.approx(family.rows[0].critical_value)
        assert alone[i] <= joint[i]


QUERIES = 60
NAMES = [f"q{n}" for n in range(QUERIES)]
FOLDS = np.arange(QUERIES) % 2


def compare(values: FloatArray) -> Comparison:
    table = ComparedValues("m", {"0": np.zeros(QUERIES), "1": values}, "0", tuple(NAMES))
    [[row]] = compare_family([table], resamples=500)
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
    assert lost.p_adjusted == 1.0


def test_an_interval_that_widens_loses_its_margin() -> None:
    values = 0.002 + 0.0002 * np.random.default_rng(2).normal(size=QUERIES)
    row = compare(values)
    assert row.answer == "better, by less than min_gain"
    wide = [0.99 * row.difference / row.standard_error] * 199
    [kept] = adjust_for_choice([row], [wide])
    assert kept.answer == row.answer
    [row], null = [compare(values - 0.002)], [400.0] * 199
    assert row.answer == "equivalent"
    assert adjust_for_choice([row], [null])[0].answer == "not shown"


def test_a_row_without_any_difference_stays_as_it_is() -> None:
    row = compare(np.zeros(QUERIES))
    assert adjust_for_choice([row], [[0.0] * 199]) == [row]


def test_a_null_is_answered_in_five_percent_by_the_adjustment_alone() -> None:
    """Two folds, 50 trials with a common part."""
    rng, draws, shown = np.random.default_rng(3), 400, 0
    for _ in range(draws):
        trials = 2 * rng.normal(size=QUERIES) + rng.normal(size=(50, QUERIES))
        null = np.abs(fit(trials, rng.normal(size=QUERIES), flips=99).null)
        shown += bool(null[0] >= np.sort(null)[-5])
    assert 0 < shown <= 0.075 * draws


def test_a_rival_that_is_the_same_leaves_nothing() -> None:
    trials = np.random.default_rng(4).normal(size=(6, QUERIES))
    same = cross_fit(trials, FOLDS, NAMES, flips=19, offset=NOTHING, rival=trials)
    assert not same.values.any()
    assert not same.null.any()


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


def test_covered_runs_are_those_of_the_intervals() -> None:
    sizes = np.array([1, 3, 6])
    codes = np.repeat(np.arange(3), sizes)
    values = np.random.default_rng(2).standard_normal((40, 10)) + 0.5
    sums = np.stack([values[:, codes == group].sum(axis=1) for group in range(3)], axis=1)
    estimates = [estimate_mean(row, codes) for row in values]
    assert cr2.count_covered(sums, sizes)[0] == sum(e.low <= 0 <= e.high for e in estimates)


def test_the_usual_interval_is_the_same_for_equal_sizes() -> None:
    by_design: dict[str, set[int]] = {}
    for promise in cr2.run(draws=50):
        by_design.setdefault(promise.design, set()).add(promise.count)
    equal = [counts for design, counts in by_design.items() if design.startswith("20 of 8")]
    assert [len(counts) for counts in equal] == [1] * 4


@pytest.mark.parametrize("design", groups.DESIGNS)
def test_all_copies_are_found_and_nothing_else(design: groups.Design) -> None:
    found = groups.search_queries(np.random.default_rng(3), design.originals)
    codes, true = found.codes, np.array(design.originals)
    assert (codes == true).all()
    assert len(true) == groups.QUERIES


def test_what_is_measured() -> None:
    measured = groups.run(draws=2)
    promises = [each for each in measured if isinstance(each, Promise)]
    assert [each.event for each in promises] == [*groups.EVENTS] * 2
    assert [each.quantity for each in measured if isinstance(each, Estimate)] == [
        "share of the true pairs found",
        "false links",
    ] * 2


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
