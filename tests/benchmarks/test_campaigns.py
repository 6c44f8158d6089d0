"""The replay of campaigns: its values, worlds, rules and proposers, and what it stored."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.collections import make_toy_collection
from benchmarks.studies.campaigns.__main__ import main
from benchmarks.studies.campaigns.pool import Measure, Pool, load_pool
from benchmarks.studies.campaigns.proposers import PROPOSERS
from benchmarks.studies.campaigns.replay import (
    Side,
)
from benchmarks.studies.campaigns.results import (
    read_cells,
    read_power,
    read_real,
)
from benchmarks.studies.campaigns.run import CAMPAIGNS
from benchmarks.studies.campaigns.table import PAGE, format_tables
from benchmarks.studies.simulations.promise import Promise
from fusion_bench.campaign.decision import is_screened, run_held_out_test
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems

SETTINGS = 30


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


def test_the_toy_study_prints_all_tables(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--toy"])
    output = capsys.readouterr().out
    assert output.count("\n|:--") == 6
    assert "nan" not in output


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
