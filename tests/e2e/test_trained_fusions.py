"""Every command ranks by a trained fusion alike, out of fold."""

import json
from pathlib import Path

import pytest

from fusion_bench import fuse
from fusion_bench.cli import main
from fusion_bench.errors import AlignmentError
from fusion_bench.evaluation.explanation import explain_query
from fusion_bench.experiment.experiment import read_experiment
from tests import tiny


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tiny.make(tmp_path)
    blend = "    blend: {method: position_aware, reranker: r}\n"
    tiny.edit(made, tiny.EXPERIMENT, "{method: rrf_v2}\n" + blend, "{method: map_fuse}\n")
    with (made / "datasets/tiny/a.trec").open("a", encoding="utf-8") as file:
        file.write("q5 Q0 d1 1 3 a\nq5 Q0 d7 2 2 a\n")  # not judged
    return made


def run(root: Path, capsys: pytest.CaptureFixture[str], command: str, *options: str) -> str:
    folders = ["--datasets", str(root / "datasets")]
    assert main([command, *options, *folders]) == 0, capsys.readouterr()
    return capsys.readouterr().out


def test_eval_reports_the_users_configuration(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--no-plots", "--json", "--out", str(root / "out"))
    report = json.loads(run(root, capsys, "eval", str(root / tiny.EXPERIMENT), *options))
    rows = {row["name"]: row for row in report["collections"][0]["systems"]}
    assert rows["two"]["config"]["fusion"] == {"method": "map_fuse", "folds": 5, "fold_seed": 0}


def test_fuse_ranks_queries_that_are_not_judged_by_a_model_of_all_judged_ones(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = str(root / tiny.EXPERIMENT)
    out = root / "fused.jsonl"
    run(root, capsys, "fuse", experiment, "--system", "two", "--out", str(out))
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    q5 = {row["document"]: row["score"] for row in rows if row["query"] == "q5"}
    # MAP of a over q1, q2, q3, q4: 1/2, 1/2, 1, 1/2.
    assert q5 == {"d1": 0.625, "d7": 0.3125}


@pytest.mark.parametrize("query", ["q1", "q3"])  # of the test and of the dev split
def test_explain_gives_the_scores_of_fuse(
    root: Path, capsys: pytest.CaptureFixture[str], query: str
) -> None:
    experiment, out = str(root / tiny.EXPERIMENT), root / "fused.jsonl"
    run(root, capsys, "fuse", experiment, "--system", "two", "--out", str(out))
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    source = read_experiment(root / tiny.EXPERIMENT)
    explained = explain_query(*source, query, system="two", folders=[root / "datasets"])
    assert {trace.document: trace.score for trace in explained.traces} == {
        row["document"]: row["score"] for row in rows if row["query"] == query
    }


def test_fuse_without_judgments_says_that_nothing_can_be_learned() -> None:
    runs = {"a": {"q": {"d": 1.0}, "r": {"d": 1.0}}}
    with pytest.raises(AlignmentError, match="map_fuse learns "):
        fuse(runs, "map_fuse")


def test_fuse_in_python_learns_from_the_dataset(root: Path) -> None:
    fused = fuse(str(root / "datasets/tiny/dataset.yaml"), "map_fuse").to_dict()
    assert fused["q5"] == {"d1": 0.625, "d7": 0.3125}
