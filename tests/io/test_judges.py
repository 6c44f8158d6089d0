"""Further judges and families in a dataset.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.io.load_records import load_judge

HEAD = "name: small\nqrels: {path: qrels.txt%s}\nruns: {a: {path: a.trec%s}}\n"


def write_dataset(folder: Path, rest: str = "", *, qrels: str = "", run: str = "") -> Path:
    """A dataset of two queries, with a judge's file ``people.csv`` beside it."""
    (folder / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\n")
    (folder / "a.trec").write_text("q1 Q0 d1 1 2 a\nq2 Q0 d1 1 2 a\n")
    (folder / "people.csv").write_text("query,document,grade,judge\nq1,d1,3,ann\nq2,d1,4,ann\n")
    path = folder / "dataset.yaml"
    path.write_text(HEAD % (qrels, run) + rest)
    return path


def load_small(folder: Path, rest: str = "", *, qrels: str = "", run: str = "") -> Dataset:
    """The dataset, read."""
    return load_dataset(write_dataset(folder, rest, qrels=qrels, run=run))


def test_a_judge_is_read_on_the_scale_of_the_judgments(tmp_path: Path) -> None:
    dataset = load_small(
        tmp_path, "judges: {people: {path: people.csv, kind: human, map: {3: 1, 4: 2}}}\n"
    )
    assert load_judge(dataset, "people").to_dict() == {"q1": {"d1": 1}, "q2": {"d1": 2}}
    assert load_judge(dataset, "qrels") is dataset.qrels
    assert dataset.spec.judges["people"].sample is None


def test_a_grade_without_a_place_on_the_scale_is_refused(tmp_path: Path) -> None:
    dataset = load_small(
        tmp_path, "judges: {people: {path: people.csv, kind: human, map: {3: 1}}}\n"
    )
    with pytest.raises(DataError, match=r"people\.csv:.*4.*'map'"):
        load_judge(dataset, "people")


def test_an_unknown_judge_is_refused_by_name(tmp_path: Path) -> None:
    dataset = load_small(tmp_path, "judges: {people: {path: people.csv, kind: human}}\n")
    with pytest.raises(UnknownNameError, match="peopel"):
        load_judge(dataset, "peopel")


def test_a_missing_file_of_a_judge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"judges\.llm\.path.*llm\.csv"):
        load_small(tmp_path, "judges: {llm: {path: llm.csv, kind: machine}}\n")


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("judges: {people: {path: people.csv}}", "judges.people.kind: is required"),
        ("judges: {people: {path: people.csv, kind: human, family: gpt}}", "no model family"),
        ("judges: {m: {path: people.csv, kind: machine, family: ' '}}", "no family of models"),
        ("judges: {m: {path: people.csv, kind: machine, sample: some}}", "sample"),
        ("judges: {m: {path: people.csv, kind: machine, map: {}}}", "map"),
        ("judges: {m: {path: ../people.csv, kind: machine}}", "leaves the dataset's folder"),
    ],
)
def test_keys_of_judges_are_strict(tmp_path: Path, rest: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_small(tmp_path, rest)


def test_families_are_one_name_in_any_case(tmp_path: Path) -> None:
    dataset = load_small(tmp_path, qrels=", kind: machine, family: GPT", run=", family: gpt")
    assert dataset.spec.qrels is not None
    assert dataset.spec.qrels.family == dataset.spec.runs["a"].family == "gpt"


def test_a_specification_is_written_as_it_was_read(tmp_path: Path) -> None:
    plain = load_small(tmp_path).spec.model_dump(mode="json")
    assert plain["qrels"] == "qrels.txt"
    spec = load_small(tmp_path, qrels=", kind: machine, family: gpt").spec
    dumped = spec.model_dump(mode="json")
    assert dumped["qrels"] == {"path": "qrels.txt", "kind": "machine", "family": "gpt"}
    assert DatasetSpec.model_validate(dumped) == spec
