"""The trial of rules of choice: its grid, its worlds, its rules, and a toy run."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.studies.choice_rules.__main__ import main
from benchmarks.studies.choice_rules.grid import (
    DEFAULT,
    OPENSEARCH_66,
    OPENSEARCH_82,
    RANX,
    SETTINGS,
)
from benchmarks.studies.choice_rules.results import (
    Outcome,
    PairResult,
    WorldResult,
    read_results,
    write_result,
)
from benchmarks.studies.choice_rules.run import NULL, OURS, POOL, UNSEEN, Stage, make_world
from benchmarks.studies.choice_rules.run import run_rounds as run_worlds
from benchmarks.studies.choice_rules.table import ROWS, format_collections, format_nulls, tally
from benchmarks.studies.how_many_queries import (
    DIFFERENCES,
    evaluate_systems,
    kendall_taus,
    permuted_taus,
)


@pytest.fixture(scope="module")
def stage() -> Stage:
    return Stage.prepare("toy")


def test_the_grid_has_the_tools_grids() -> None:
    assert len(SETTINGS) == len(set(SETTINGS)) <= 500
    assert (len(OPENSEARCH_66), len(OPENSEARCH_82)) == (66, 82)
    optimize = pytest.importorskip("ranx.fusion_optimization.optimize_weights")
    weights = optimize.get_trial_configs(optimize.get_possible_weights(0.1), 2)
    mine = [SETTINGS[n] for n in RANX]
    assert [each.tenths / 10 for each in mine if each.k is None] == [a for a, _ in weights]
    assert [each.k for each in mine if each.k is not None] == [*range(10, 101, 10)]


def test_values_are_those_of_a_loop(stage: Stage) -> None:
    grid = stage.grid
    values = grid.evaluate(grid.gains)
    assert values.shape == (len(SETTINGS), len(stage.pair.runs.queries))
    for setting in (0, grid.default, len(SETTINGS) - 1):
        for q in (0, 7):
            found = sum(
                grid.gains[q, column] / math.log2(rank + 2)
                for rank, column in enumerate(grid.top[setting, q])
            )
            assert values[setting, q] == pytest.approx(found / grid.ideal[q])


def test_rrf_ranks_as_the_package(stage: Stage) -> None:
    from benchmarks.studies.choice_rules.pairs import load_pair
    from fusion_bench.experiment.system import System
    from fusion_bench.measures import parse_measure
    from fusion_bench.ranking.system_scores import evaluate_systems as evaluate

    runs = load_pair("toy").runs
    fusion = {"method": "rrf", "k": 60}
    system = System.model_validate({"name": "s", "runs": runs.sources, "fusion": fusion})
    [scores] = evaluate([system], runs, [parse_measure("nDCG@10")])
    mine = stage.grid.evaluate(stage.grid.gains)[stage.grid.default]
    assert SETTINGS[stage.grid.default] == DEFAULT
    assert np.mean(np.abs(mine - scores.values[0]) < 1e-12) > 0.8  # ties are settled otherwise


@pytest.mark.parametrize("kind", [NULL, POOL])
def test_nothing_is_better_on_a_null(stage: Stage, kind: str) -> None:
    worlds = [make_world(stage, kind, number) for number in range(200)]
    gains = [world.values - world.values[stage.grid.default] for world in worlds]
    means = np.array([each.mean(axis=1) for each in gains])
    errors = means.std(axis=0, ddof=1) / math.sqrt(len(means))
    assert np.abs(worlds[0].truth).max() < 1e-12
    assert (np.abs(means.mean(axis=0)) < 5 * errors + 1e-12).all()
    dealt = make_world(stage, kind, 1).values
    assert not np.array_equal(dealt, make_world(stage, kind, 2).values)
    assert np.array_equal(dealt, make_world(stage, kind, 1).values)


def make_result(ships: list[bool]) -> PairResult:
    worlds = tuple(
        WorldResult(
            NULL,
            n,
            0.0,
            0.5,
            1.0,
            tuple(
                Outcome(rule, ship, 1, 0.03, 0.01, "keep" if rule == OURS else "") for rule in ROWS
            ),
        )
        for n, ship in enumerate(ships)
    )
    return PairResult("made", ("a", "b"), 40, 40, 12.0, worlds)


@pytest.mark.parametrize(("wrong", "holds"), [(10, "yes"), (11, "no")])
def test_of_200_nulls_ten_may_ship(wrong: int, holds: str) -> None:
    result = make_result([n < wrong for n in range(200)])
    found = tally([result], NULL, OURS)
    assert found is not None
    assert (found.worlds, found.ships, found.harmful) == (200, wrong, 0)
    assert (found.claimed, found.truth) == pytest.approx((0.03, 0.01))
    assert (
        format_collections([result]).splitlines()[-1].endswith(f"{holds} |".replace("no", "**no**"))
    )
    assert f"| 200 | {wrong / 2:.1f} [" in format_nulls([result])
    assert "+0.0200" in format_nulls([result])


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    result = make_result([True, False])
    write_result(result, tmp_path)
    assert read_results(tmp_path) == [result]


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    list(run_worlds(["toy"], {NULL: 1}, tmp_path, 1))
    [first] = read_results(tmp_path)
    lines = list(run_worlds(["toy"], {NULL: 1, UNSEEN: 1}, tmp_path, 1))
    [both] = read_results(tmp_path)
    assert both.worlds[0] == first.worlds[0]
    assert both.numbers(NULL) == both.numbers(UNSEEN) == {0}
    assert len(lines) == 1
    assert not list(run_worlds(["toy"], {NULL: 1, UNSEEN: 1}, tmp_path, 1))


def test_the_toy_run_prints_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--toy"])
    output = capsys.readouterr().out
    for title in ROWS.values():
        assert output.count(f"| {title} |") >= 2
    assert not re.search(r"\bnan\b", output)
    assert re.search(r"\| toy \|.*\| 40 \|", output)


def test_kendalls_tau_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    means = np.random.default_rng(1).random((3, 12))
    expected = [stats.kendalltau(means[a], means[b]).statistic for a, b in ((0, 1), (0, 2), (1, 2))]
    assert kendall_taus(means) == pytest.approx(expected)
    null = permuted_taus(means, 400)
    assert null.shape == (400, 3)
    assert abs(null.mean()) < 0.03


def test_the_middle_pair_needs_more_queries_for_less() -> None:
    toy = evaluate_systems("toy")
    middle = toy.spreads[len(toy.spreads) // 2]
    sizes = [middle.needed_queries(each, None) for each in DIFFERENCES]
    counts = [size.queries for size in sizes if size is not None]
    assert counts == sorted(counts, reverse=True)
    errors = [each.standard_error for each in toy.spreads]
    assert errors == sorted(errors, key=lambda error: error or 0.0)
