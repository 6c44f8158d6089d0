"""Simulated machine judges, and the coverage that is measured with them, on made values."""

from pathlib import Path

import numpy as np
import pytest

import fusion_bench as fb
from benchmarks.studies.machine_judges.confusion import SCALES, confusion, count_pairs
from benchmarks.studies.machine_judges.population import Population, make_judges
from benchmarks.studies.prediction_powered_table import (
    METHODS,
    OURS,
    format_table,
    simulate_cell,
)

CODEX = {"t1": {"a": 0, "b": 2, "c": 3, "d": 4}, "t2": {"a": 1, "b": 2, "c": 0}}
QWEN = {"t1": {"a": 1, "b": 2, "c": 2, "d": 3}, "t2": {"a": 0, "b": 4, "c": 0}}


@pytest.fixture
def _grades(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "rag25-dev-judges"
    folder.mkdir()
    for name, grades in (("codex", CODEX), ("qwen", QWEN), ("ministral", CODEX)):
        fb.Qrels.from_dict(grades).to_trec(folder / f"{name}.qrels")
        (folder / f"{name}.qrels").rename(folder / f"{name}.qrels.gz")
    monkeypatch.setenv("FUSION_BENCH_PARITY_DATA", str(tmp_path))


@pytest.mark.usefixtures("_grades")
def test_confusion_counts_pairs_on_the_scale_of_a_collection() -> None:
    scale = SCALES["codec"]
    assert count_pairs("qwen", scale).tolist() == [[3, 0, 0], [0, 1, 1], [0, 1, 1]]
    assert count_pairs("qwen", scale, "t2").tolist() == [[2, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert confusion("qwen", scale)[1].tolist() == [0, 0.5, 0.5]


@pytest.mark.usefixtures("_grades")
def test_judges_grade_as_their_confusion_says() -> None:
    judges = make_judges(SCALES["codec"], 4_000)
    rng = np.random.default_rng(1)
    grades, favored = np.array([0, 1, 2]), np.array([0])

    given = {name: judge(rng, grades, favored) for name, judge in judges.items()}

    assert given["ministral"].tolist() == [[0, 1, 2]] * 4_000
    assert (given["qwen"][:, 0] == 0).all()
    assert given["qwen"][:, 1:].mean(axis=0) == pytest.approx([1.5, 1.5], abs=0.05)
    assert (given["favors one system"][:, 0] == 1).all()
    assert (given["inverted"][:, 0] == 2).all()
    assert given["generous"][:, 0].mean() == pytest.approx(0.5, abs=0.05)
    assert given["blind"].mean() == pytest.approx(1, abs=0.05)


def test_coverage_of_a_biased_machine_is_that_of_people() -> None:
    rng = np.random.default_rng(2)
    people = rng.uniform(0, 0.5, size=(2, 40))
    machine = people[:, :, None] + rng.normal(0, 0.1, size=(2, 40, 20))
    machine[1] += 0.2
    population = Population(("a", "b"), people, {"biased": machine})

    cell = simulate_cell(population, "made", "biased", 20, runs=60, seed=(1,))

    covered = {method: cell.covered[method][0] for method in METHODS}
    assert covered["machine only"] == 0
    assert covered[OURS] >= 53  # 95 % of 60 is 57, with a standard error of 1.7
    assert cell.width < 0.8
    text = format_table([cell])
    assert f"{OURS}: 1 (" in text
    assert "machine only: 0 (0.0 %)" in text
