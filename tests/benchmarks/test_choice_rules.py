"""The trial of rules of choice: its grid, its worlds, its rules, and a toy run."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.studies.choice_rules.__main__ import main
from benchmarks.studies.choice_rules.grid import (
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


@pytest.fixture(scope="module")
def stage() -> Stage:
    return Stage.prepare("toy")


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
