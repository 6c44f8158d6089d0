"""What works on a pulled dataset before anything is judged, and what says what to do."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import fusion_bench
from fusion_bench import System, fuse, load_dataset
from fusion_bench.cli import main
from fusion_bench.errors import ConfigError
from fusion_bench.models.rerank_run import prepare_request
from tests.engines.pull.cases import DENSE, KEYWORD, pull

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pull(tmp_path, {"bm25": KEYWORD, "dense": DENSE})
    return tmp_path / "mine"


def run(capsys: Capture, words: Sequence[object]) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([*map(str, words)])
    return code, *capsys.readouterr()


def test_commands_that_need_no_judgments_work(folder: Path, capsys: Capture) -> None:
    experiment, fused = folder / "experiment.yaml", folder.parent / "fused.trec"
    assert main(["fuse", str(experiment), "--system", "rrf", "--out", str(fused)]) == 0
    assert {line.split()[0] for line in fused.read_text("utf-8").splitlines()} == {"q1", "q2"}
    code, page, _ = run(capsys, ["explain", experiment, "q1"])
    assert code == 0
    assert "grade –: not judged." in page
    assert main(["lint", str(experiment)]) == 0
    words = ["export", experiment, "--to", "elasticsearch", "--system", "rrf", "--replay"]
    words += ["--vector", "dense"]
    code, output, errors = run(capsys, words)
    assert code == 0
    assert '"rank_window_size": 4' in output
    assert "nothing is judged" in output + errors


def test_unknown_queries_and_trained_fusions_say_what_they_lack(
    folder: Path, capsys: Capture
) -> None:
    words = ["explain", folder / "experiment.yaml", "q9"]
    assert "'q9' among the 2" in run(capsys, words)[2]
    path = folder / "trained.yaml"
    path.write_text(
        "dataset: dataset.yaml\nsystems: {s: {runs: [bm25, dense], fusion: {method: map_fuse}}}\n"
        "baseline: s\n"
    )
    out = ["--out", folder.parent / "fused.trec"]
    for words in (["fuse", path, "--system", "s", *out], ["explain", path, "q1"]):
        code, _, error = run(capsys, words)
        assert code == 2
        assert "'fusion-bench judge" in error


def test_in_python(folder: Path) -> None:
    dataset = load_dataset(folder)
    assert repr(dataset) == "Dataset('mine', 2 unjudged queries; runs: bm25, dense)"
    assert [*fuse(dataset, "rrf").to_dict()] == [*fuse(str(folder), "rrf").to_dict()]
    system = System("s", ["bm25", "dense"])
    report = fusion_bench.export(
        system, "elasticsearch", dataset=dataset, vector=["dense"], replay=True
    )
    assert report.not_replayed == "nothing is judged"
    for call in (
        lambda: fusion_bench.compare(dataset, None, {"a": "rrf", "b": "bm25"}),
        lambda: fusion_bench.tune(dataset, None, "rrf", trials=5),
        lambda: fuse(dataset, "map_fuse"),
    ):
        with pytest.raises(ConfigError, match=r"'fusion-bench judge'"):
            call()
    with pytest.raises(ConfigError, match="nothing is judged"):
        fusion_bench.evaluate_systems(system, dataset.aligned(["bm25", "dense"]), "RR@10")


def test_candidates_of_a_reranker_need_no_judgments(tmp_path: Path) -> None:
    pull(tmp_path, {"bm25": KEYWORD}, texts=True)
    request = prepare_request(tmp_path / "mine/dataset.yaml", System("bm25", ["bm25"]), depth=1)
    assert [(query.id, len(query.candidates)) for query in request.queries] == [
        ("q1", 1),
        ("q2", 1),
    ]


def test_the_check_of_a_dataset_speaks_of_no_judged_query(folder: Path, capsys: Capture) -> None:
    (folder / "queries.jsonl").write_text('{"id": "q1"}\n{"id": "q2"}\n{"id": "q3"}\n')
    code, page, _ = run(capsys, ["dataset", "check", folder])
    assert code == 0
    assert "has no result" in page
