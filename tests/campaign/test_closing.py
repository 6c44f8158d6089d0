"""A closed campaign: every ask with its held-out values, by the plain computation."""

from pathlib import Path

import numpy as np
import pytest

from fusion_bench.campaign.ask import close_campaign
from fusion_bench.errors import ConfigError
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.held_out import show_held_out
from tests import campaign_project as project
from tests.campaign.test_ask import BOTH, STRONG, ask


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project.make(tmp_path)


def first_ranks(root: Path, name: str) -> dict[str, int]:
    ranks = {}
    for line in (root / f"datasets/made/{name}.trec").read_text(encoding="utf-8").splitlines():
        query, _, document, rank, *_ = line.split()
        if document.startswith("r"):
            ranks[query] = int(rank)
    return ranks


def test_held_out_values_are_those_of_the_files(root: Path) -> None:
    project.open_made(root)
    ask(root, {"runs": ["weak"], "depth": 1})
    ask(root, STRONG)
    report = close_campaign(project.paths_of(root), "A. Person")
    weak, strong = (first_ranks(root, name) for name in ("weak", "strong"))
    assert sorted(report.held_out) == sorted(project.held_out_queries(root))
    for values, ranks in ((report.baseline_values, weak), (report.shipped_values, strong)):
        expected = [1 / np.log2(1 + ranks[query]) for query in report.held_out]
        assert values == pytest.approx(expected, abs=1e-12)
    kept, shipped = report.asks
    assert (kept.answer, shipped.answer) == ("keep", "ship")
    assert kept.is_screened
    assert shipped.gain is not None
    mean = np.mean(report.shipped_values) - np.mean(report.baseline_values)
    assert shipped.gain.difference == pytest.approx(mean)


def test_the_interval_is_that_of_the_share(root: Path) -> None:
    project.open_made(root, asks=1000)
    ask(root, STRONG)
    [shipped] = close_campaign(project.paths_of(root), "A. Person").asks
    gain = shipped.gain
    assert gain is not None
    assert gain.low is not None
    assert 0 < gain.low < gain.difference
    assert shipped.log_e_value is not None
    assert shipped.log_e_value >= np.log(1000 / 0.05)


def test_a_person_closes_it_for_good(root: Path) -> None:
    project.open_made(root)
    with pytest.raises(ConfigError, match="--by"):
        close_campaign(project.paths_of(root), "  ")
    first = close_campaign(project.paths_of(root), "A. Person")
    again = close_campaign(project.paths_of(root), "Another")
    assert first.closed_by == again.closed_by == "A. Person"
    told = ask(root, BOTH)
    assert (told.answer, told.asks_left) == ("closed", 0)
    assert "A. Person" in told.reason


def test_an_override_ends_the_guarantee(root: Path) -> None:
    project.open_made(root)
    with show_held_out("A. Person", "eval e.yaml"):
        load_dataset(root / project.DATASET)
    assert "A. Person" in ask(root, BOTH).no_guarantee
    report = close_campaign(project.paths_of(root), "Another")
    assert report.overrides == ("A. Person: eval e.yaml",)
    assert "A. Person" in report.status.no_guarantee
