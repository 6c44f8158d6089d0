"""A published figure from files of this repository, so that every test run reproduces one."""

from pathlib import Path

import pytest

from fusion_bench import System, align_runs, evaluate_systems, load_dataset, parse_measure

DATASET = Path(__file__).parents[2] / "datasets/dcg-example/dataset.yaml"


@pytest.mark.parametrize(("measure", "published"), [("nDCG@6", 0.785), ("RR", 1.0), ("P@6", 5 / 6)])
def test_the_worked_example_of_ndcg(measure: str, published: float) -> None:
    dataset = load_dataset(DATASET)
    runs = align_runs(dataset.qrels, list(dataset.runs.values()))
    [scores] = evaluate_systems(
        [System(name="example", runs=("example",))], runs, [parse_measure(measure)]
    )
    assert scores.values[0, 0] == pytest.approx(published, abs=5e-4)
