"""The replay of campaigns: its values, worlds, rules and proposers, and what it stored."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.collections import make_toy_collection
from benchmarks.studies.campaigns.__main__ import main
from benchmarks.studies.campaigns.nulls import (
    CANDIDATES,
    SKEWS,
    Null,
    Scene,
    draw_skewed,
    flip_signs,
    permute_grades,
)
from benchmarks.studies.campaigns.pool import Measure, Pool, load_pool
from benchmarks.studies.campaigns.power import draw_campaigns
from benchmarks.studies.campaigns.proposers import ADVERSARY, PROPOSERS
from benchmarks.studies.campaigns.real_command import run_real_campaigns
from benchmarks.studies.campaigns.replay import (
    LOOKS,
    UNPROTECTED,
    Side,
    World,
    bonferroni,
    campaign_rule,
    replay,
)
from benchmarks.studies.campaigns.results import (
    PowerResult,
    read_cells,
    read_power,
    read_real,
    read_tails,
    write_cells,
    write_power,
    write_real,
    write_tails,
)
from benchmarks.studies.campaigns.run import CAMPAIGNS
from benchmarks.studies.campaigns.table import PAGE, format_tables
from benchmarks.studies.campaigns.tails import measure_tails
from benchmarks.studies.simulations.promise import Promise
from fusion_bench.campaign.decision import is_screened, run_held_out_test
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.intervals import clopper_pearson

SETTINGS = 30
#: The order in which a test asks about candidates.
FIRST_TO_LAST = PROPOSERS[ADVERSARY]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pools")


@pytest.fixture(scope="module")
def pool(folder: Path) -> Pool:
    return load_pool("toy", folder, SETTINGS)


@pytest.mark.parametrize("measure", ["nDCG@10", "RR@10"])
def test_values_are_those_of_the_commands(pool: Pool, measure: Measure) -> None:
    collection = make_toy_collection()
    runs = replace(collection.runs, spaces=collection.spaces)
    systems = [System.model_validate({"name": "s", **config}) for config in pool.configs]
    expected = evaluate_systems(systems, runs, [parse_measure(measure)])
    found = pool.evaluate(measure)
    assert found == pytest.approx(np.array([each.values[0] for each in expected]), abs=1e-6)


def test_a_stored_pool_is_read_again(pool: Pool, folder: Path) -> None:
    again = load_pool("toy", folder, SETTINGS)
    assert again.configs == pool.configs
    assert (again.evaluate("RR@10") == pool.evaluate("RR@10")).all()


def test_dealt_grades_are_those_of_the_query_and_make_no_setting_better(pool: Pool) -> None:
    rng = np.random.default_rng(1)
    dealt = [pool.deal_grades(rng) for _ in range(400)]
    assert (np.sort(dealt[0]) == np.sort(pool.grades)).all()
    gains = np.array([pool.evaluate("nDCG@10", grades).mean(axis=1) for grades in dealt])
    gains -= gains[:, :1]
    errors = gains.std(axis=0) / math.sqrt(len(gains)) + 1e-9
    assert (np.abs(gains.mean(axis=0)) < 4.5 * errors).all()


@pytest.mark.parametrize("size", [1, 3])
def test_rows_are_tested_as_a_single_ask(size: int) -> None:
    rng = np.random.default_rng(2)
    values = np.clip(rng.normal(0.03, 0.15, size=(20, 300)), -1, 1)
    groups = rng.permutation(300) // size
    side = Side.select(values, groups, np.arange(300))
    tests, log_e = side.test(side.values), side.log_e_values(side.values)
    for row in range(20):
        for share in (0.5, 0.01, 5e-5):
            difference = values[row]
            found = run_held_out_test(
                difference, groups, share=share, min_gain=0.0, is_bounded=True
            )
            assert found.log_e_value == pytest.approx(log_e[row], abs=1e-9)
            assert (found.mean > found.critical_mean) == (tests.p[row] < share)
        assert is_screened(difference, groups) == (tests.p[row] > 0.2)
    assert (tests.groups, tests.changed.min()) == (300 // size, 300)


def make_world(gains: list[float], tuning: list[float] | None = None) -> World:
    """Candidates with these mean gains on held-out and tuning queries."""
    noise = np.random.default_rng(3).normal(0, 0.1, 300)
    noise -= noise.mean()
    sides = [np.array(each)[:, None] + noise for each in (gains, tuning or gains)]
    held_out, known = (Side(each, np.arange(300)) for each in sides)
    return World(known, held_out, np.arange(len(gains), dtype=np.float64)[:, None])


def test_the_first_convincing_candidate_ships_and_becomes_the_baseline() -> None:
    world = make_world([0.0, 0.05, 0.15, -0.01, 0.3])
    rules = [campaign_rule(10, 1), campaign_rule(10, 3), UNPROTECTED]
    one, three, each = replay(world, FIRST_TO_LAST, rules, 5, [1])
    assert one == [(2, 1)]
    assert three == [(2, 1), (3, 2), (5, 4)]
    assert each == [(2, 1)]


def test_what_is_not_better_on_the_tuning_queries_is_not_tested() -> None:
    world = make_world([0.05, 0.05], tuning=[0.0, 0.05])
    rules = [campaign_rule(10, 1), bonferroni(10)]
    assert replay(world, FIRST_TO_LAST, rules, 2, [1]) == [[(2, 1)], [(1, 0)]]


def test_looks_have_falling_levels() -> None:
    world = make_world([0.0] * 60 + [0.02])
    assert replay(world, FIRST_TO_LAST, [LOOKS, UNPROTECTED], 61, [1]) == [[], [(61, 60)]]


@pytest.mark.parametrize("name", PROPOSERS)
def test_a_proposer_asks_about_each_candidate_once(name: str) -> None:
    world = make_world(np.linspace(-0.1, 0.1, 120).tolist())
    asked = np.zeros(120, dtype=bool)
    asked[::3] = True
    order = PROPOSERS[name](world, asked, 3, np.random.default_rng(1))
    assert sorted(order.tolist()) == np.flatnonzero(~asked).tolist()


def test_tpe_finds_good_settings_sooner_than_chance() -> None:
    world = make_world(np.linspace(-0.1, 0.1, 400).tolist())
    world = replace(world, points=world.points / 400)
    order = PROPOSERS["TPE"](world, np.zeros(400, dtype=bool), None, np.random.default_rng(1))
    assert order[40:140].mean() > 240


@pytest.mark.parametrize("make", [permute_grades, flip_signs])
@pytest.mark.parametrize("guesses", [False, True])
def test_worlds_of_a_collection_hide_whole_groups(pool: Pool, make: Null, guesses: bool) -> None:
    scene = Scene.prepare(pool, "nDCG@10")
    world = make(scene, guesses, np.random.default_rng(4))
    count = CANDIDATES if guesses else SETTINGS
    assert world.guesses == guesses
    assert world.held_out.values.shape == (count, 20)
    assert world.held_out.sizes.tolist() == [2] * 10


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("guesses", [False, True])
def test_made_worlds_have_a_mean_of_zero_and_harmless_tuning_queries(
    skew: str, guesses: bool
) -> None:
    win, wins, loss, losses = SKEWS[skew]
    assert win * wins == pytest.approx(loss * losses)
    world = draw_skewed(skew, 500, guesses, np.random.default_rng(5))
    values = world.held_out.values
    error = values.std() / math.sqrt(values.size)
    assert abs(values.mean()) < 4 * error
    assert (world.tuning.test(world.tuning.values).p < 0.2).all()


@pytest.mark.parametrize("skew", SKEWS)
def test_exact_tails_are_those_of_drawn_differences(skew: str) -> None:
    row = measure_tails(skew, 60)
    assert row.mean_e == pytest.approx(1.0)
    assert row.betting <= 1
    world = draw_skewed(skew, 60, False, np.random.default_rng(10))
    p = world.held_out.test(world.held_out.values).p
    low, high = clopper_pearson(int((p <= 5e-5).sum()), len(p))
    assert low <= row.student * 5e-5 <= high


def test_guesses_follow_what_was_shipped() -> None:
    world = draw_skewed(next(iter(SKEWS)), 500, True, np.random.default_rng(6))
    asked = np.arange(CANDIDATES) < 10
    again = world.guess_again(9, asked, np.random.default_rng(7)).held_out.values
    before = world.held_out.values
    assert (again[:10] == before[:10]).all()
    is_shared = (again[10:] == before[9]).mean()
    assert is_shared > (before[10:] == before[9]).mean() + 0.1


def test_products_with_counts_are_the_tests_of_the_drawn_queries() -> None:
    differences = np.clip(np.random.default_rng(8).normal(0.03, 0.15, (3, 60)), -1, 1)
    draws = draw_campaigns(differences, 200, 4, np.random.default_rng(9))
    counts = np.random.default_rng(9).multinomial(200, np.full(60, 1 / 60), size=4)
    for row, (b, count) in zip(differences, enumerate(counts), strict=False):
        found = run_held_out_test(
            np.repeat(row, count), None, share=0.01, min_gain=0.0, is_bounded=True
        )
        place = differences.tolist().index(row.tolist()), b
        assert found.log_e_value == pytest.approx(draws.log_e[place])
        assert (found.mean > found.critical_mean) == (draws.p[place] < 0.01)


def test_the_toy_study_prints_all_tables(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--toy"])
    output = capsys.readouterr().out
    assert output.count("\n|:--") == 6
    assert "nan" not in output


def test_the_command_answers_as_the_replay() -> None:
    for each in run_real_campaigns("toy", 4, queries=40, settings=20, asks=15):
        assert each.agrees
        assert each.asked > 0


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    cells, power, tails = read_cells(), read_power(), read_tails()
    write_cells(cells, tmp_path)
    write_power(power, tmp_path)
    write_tails(tails, tmp_path)
    write_real(read_real(), tmp_path)
    assert (read_tails(tmp_path), read_real(tmp_path)) == (tails, read_real())
    assert (read_cells(tmp_path), read_power(tmp_path)) == (cells, power)
    assert read_power(tmp_path / "none") == PowerResult()


def test_stored_campaigns_hold_the_level_in_every_cell_and_pooled() -> None:
    cells = read_cells()
    assert {cell.proposer for cell in cells} == set(PROPOSERS)
    assert min(cell.campaigns for cell in cells) >= CAMPAIGNS
    for cell in cells:
        count = len(cell.first["campaign"])
        assert Promise(cell.null, "false", count, cell.campaigns, 0.05, "at most").holds, cell.key
    count, runs = sum(len(c.first["campaign"]) for c in cells), sum(c.campaigns for c in cells)
    assert runs >= 2000
    assert Promise("pooled", "false", count, runs).interval[1] <= 0.05


def test_stored_campaigns_find_a_true_gain_of_three_hundredths() -> None:
    [row] = [
        row
        for row in read_power().rows
        if (row.measure, row.queries, row.gain) == ("nDCG@10", 833, (0.025, 0.035))
        and (row.phase, row.ships, row.asks) == (1, 1, 1000)
    ]
    assert row.single["campaign"] >= 0.8
    assert row.any_of >= 0.8


def test_the_page_has_the_stored_tables() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for mark, table in format_tables().items():
        assert table in page, mark


def test_stored_campaigns_through_the_command_answer_as_the_replay() -> None:
    campaigns = read_real()
    assert len(campaigns) >= 20
    assert all(each.agrees for each in campaigns)
    assert sum(len(each.ships) for each in campaigns if not each.is_null) >= 5
