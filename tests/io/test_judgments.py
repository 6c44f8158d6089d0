"""Who judged a dataset, and datasets that nobody judged."""

from pathlib import Path

import numpy as np
import pytest

from fusion_bench.checks.dataset_facts import dataset_notices, describe_dataset
from fusion_bench.cli import main
from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.io.dataset import Dataset, load_dataset, load_judge
from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.models.retrieval import read_texts

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
    return load_dataset(write_dataset(folder, rest, qrels=qrels, run=run))


def test_a_judge_is_read_on_the_scale_of_the_judgments(tmp_path: Path) -> None:
    dataset = load_small(
        tmp_path, "judges: {people: {path: people.csv, kind: human, map: {3: 1, 4: 2}}}\n"
    )
    assert load_judge(dataset, "people").to_dict() == {"q1": {"d1": 1}, "q2": {"d1": 2}}
    assert load_judge(dataset, "qrels") is dataset.qrels
    assert dataset.spec.judges["people"].sample is None


def test_a_grade_without_a_place_and_an_unknown_or_missing_judge_are_refused(
    tmp_path: Path,
) -> None:
    dataset = load_small(
        tmp_path, "judges: {people: {path: people.csv, kind: human, map: {3: 1}}}\n"
    )
    with pytest.raises(DataError, match=r"people\.csv:.*4.*'map'"):
        load_judge(dataset, "people")
    dataset = load_small(tmp_path, "judges: {people: {path: people.csv, kind: human}}\n")
    with pytest.raises(UnknownNameError, match="peopel"):
        load_judge(dataset, "peopel")
    with pytest.raises(DataError, match=r"judges\.llm\.path.*llm\.csv"):
        load_small(tmp_path, "judges: {llm: {path: llm.csv, kind: machine}}\n")


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("judges: {people: {path: people.csv}}", "judges.people.kind: "),
        ("judges: {people: {path: people.csv, kind: human, family: gpt}}", "no model family"),
        ("judges: {m: {path: people.csv, kind: machine, family: ' '}}", "no family"),
        ("judges: {m: {path: people.csv, kind: machine, sample: some}}", "sample"),
        ("judges: {m: {path: people.csv, kind: machine, map: {}}}", "map"),
        ("judges: {m: {path: ../people.csv, kind: machine}}", "leaves the dataset's"),
    ],
)
def test_keys_of_judges_are_strict(tmp_path: Path, rest: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_small(tmp_path, rest)


def test_judges_of_a_specification_are_written_as_read_in_any_case(tmp_path: Path) -> None:
    dataset = load_small(tmp_path, qrels=", kind: machine, family: GPT", run=", family: gpt")
    assert dataset.spec.qrels is not None
    assert dataset.spec.qrels.family == dataset.spec.runs["a"].family == "gpt"
    plain = load_small(tmp_path).spec.model_dump(mode="json")
    assert plain["qrels"] == "qrels.txt"
    spec = load_small(tmp_path, qrels=", kind: machine, family: gpt").spec
    dumped = spec.model_dump(mode="json")
    assert dumped["qrels"] == {"path": "qrels.txt", "kind": "machine", "family": "gpt"}
    assert DatasetSpec.model_validate(dumped) == spec


DATASET = """\
name: mine
queries: queries.jsonl
documents: documents.jsonl
runs: {bm25: {path: bm25.trec}}
"""
QUERIES = '{"id": "q2", "text": "two", "type": "local"}\n{"id": "q1", "text": "one"}\n'
DOCUMENTS = '{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}\n'
BM25 = "q1 Q0 a 1 2.0 r\nq1 Q0 b 2 1.0 r\nq3 Q0 a 1 1.0 r\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in {
        "dataset.yaml": DATASET,
        "queries.jsonl": QUERIES,
        "documents.jsonl": DOCUMENTS,
        "bm25.trec": BM25,
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "dataset.yaml"


def judge(path: Path) -> None:
    (path.parent / "qrels.txt").write_text("q1 0 b 2\n", encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        file.write("qrels: qrels.txt\n")


def test_every_query_is_kept_where_nothing_is_judged(path: Path) -> None:
    for _ in range(2):  # the second time from the cache
        dataset = load_dataset(path, every_query=True)
        assert not dataset.is_judged
        assert dataset.qrels.queries == ("q1", "q2", "q3")
        assert dataset.qrels.to_dict() == {"q1": {}, "q2": {}, "q3": {}}
        aligned = dataset.aligned(["bm25"])
        assert aligned.offsets.tolist() == [0, 2, 2, 3]
        assert aligned.types == (None, "local", None)
        assert not aligned.judged.any()
        assert repr(dataset.qrels) == "Qrels(3 queries, no judgments)"


def test_a_judged_dataset_may_keep_its_other_queries_too(path: Path) -> None:
    judge(path)
    assert load_dataset(path).qrels.queries == ("q1",)
    assert load_dataset(path, every_query=None).qrels.queries == ("q1",)
    for _ in range(2):
        dataset = load_dataset(path, every_query=True)
        assert dataset.is_judged
        assert dataset.qrels.to_dict() == {"q1": {"b": 2}, "q2": {}, "q3": {}}
        assert np.flatnonzero(dataset.aligned(["bm25"]).grades).tolist() == [0]


def test_queries_are_added_in_order_of_bytes() -> None:
    qrels = Qrels.from_dict({"q2": {"d": 1}})
    assert qrels.add_queries(["q3", "q10", "q2"]).to_dict() == {"q10": {}, "q2": {"d": 1}, "q3": {}}


def test_whatever_needs_judgments_says_how_to_make_them(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match=r"fusion-bench judge .*dataset\.yaml"):
        load_dataset(path)
    experiment = path.parent / "e.yaml"
    experiment.write_text(
        "dataset: dataset.yaml\nbaseline: bm25\nsystems: {bm25: {runs: [bm25]}}\n"
    )
    for command in ("eval", "diagnose"):
        assert main([command, str(experiment)]) == 2
        assert "fusion-bench judge" in capsys.readouterr().err


def test_check_and_show_read_it(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = load_dataset(path, cache=False, every_query=None)
    facts = describe_dataset(dataset)
    assert (facts["judged_queries"], facts["grades"]) == (0, {})
    notices = dataset_notices(dataset)
    assert notices[0].startswith("Nothing is judged")
    assert not any("same document ids" in note for note in notices)
    assert main(["dataset", "check", str(path)]) == 0
    assert "Nothing is judged" in capsys.readouterr().out
    assert main(["dataset", "show", str(path)]) == 0
    assert "judged queries: 0" in capsys.readouterr().out


def test_retrieve_searches_for_all_of_its_queries(path: Path) -> None:
    assert read_texts(path).queries == {"q2": "two", "q1": "one"}
