"""Which queries are judged on, and which ones choices are made on."""

from pathlib import Path

import pytest

from fusion_bench.evaluation.prepared_dataset import EvaluationSet, prepare_dataset
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.dataset import load_dataset
from tests import tiny
from tests.tiny import DATASET, EXPERIMENT, edit


def task(root: Path, *, split: str | None = None, query_type: str | None = None) -> EvaluationSet:
    experiment, source = read_experiment(root / EXPERIMENT)
    asked = experiment.model_copy(update={"split": split, "query_type": query_type})
    return prepare_dataset(asked, source, load_dataset(root / DATASET))


@pytest.mark.parametrize(
    ("split", "queries", "tuning", "resolved"),
    [
        (None, ("q1", "q2", "q4"), ("q3",), "test"),
        ("test", ("q1", "q2", "q4"), ("q3",), "test"),
        ("dev", ("q3",), None, "dev"),
        ("all", ("q1", "q2", "q3", "q4"), None, None),
    ],
)
def test_splits(
    split: str | None,
    queries: tuple[str, ...],
    tuning: tuple[str, ...] | None,
    resolved: str | None,
    tmp_path: Path,
) -> None:
    found = task(tiny.make(tmp_path), split=split)
    assert found.runs.queries == queries
    assert (None if found.tuning is None else found.tuning.queries) == tuning
    assert found.split == resolved
    assert found.tuning_split == ("dev" if tuning else None)


def test_without_a_test_split_all_queries_are_judged_on(root: Path) -> None:
    path = root / "datasets/tiny/queries.jsonl"
    text = path.read_text(encoding="utf-8").replace('"test"', '"train"')
    path.write_text(text, encoding="utf-8")
    found = task(root)
    assert found.split is None
    assert len(found.runs.queries) == 4
    assert found.tuning is None


def test_a_query_type_narrows_what_is_judged_and_not_what_is_chosen_on(tmp_path: Path) -> None:
    found = task(tiny.make(tmp_path), query_type="local")
    assert found.runs.queries == ("q1", "q4")
    assert found.tuning is not None
    assert found.tuning.queries == ("q3",)
    assert task(tiny.make(tmp_path), split="all", query_type="relationship").runs.queries == ("q3",)


def test_groups_are_those_of_the_dataset_or_each_query_its_own(tmp_path: Path) -> None:
    assert task(tiny.make(tmp_path)).groups.tolist() == [0, 0, 1]
    edit(tmp_path, DATASET, "queries: queries.jsonl\n", "")
    assert task(tmp_path).groups.tolist() == [0, 1, 2, 3]
