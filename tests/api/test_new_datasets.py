"""``add_dataset``, ``new_dataset`` and ``sample_log`` write and draw what the commands do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.errors import FusionBenchError
from tests import tiny
from tests.importers.datasets.collections import make_beir

Capture = pytest.CaptureFixture[str]


def test_added_collection_is_that_of_the_command(tmp_path: Path, capsys: Capture) -> None:
    place = f"beir:{make_beir(tmp_path / 'tiny')}"
    added = fb.add_dataset(place, tmp_path / "a", splits=["test"])
    assert main(["dataset", "add", place, "--out", f"{tmp_path}/b", "--split", "test"]) == 0
    capsys.readouterr()
    for file in added.files:
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
    assert dict(added.to_pandas().to_numpy().tolist()) == added.counts
    assert "license" in repr(added)
    with pytest.raises(FusionBenchError, match=r"dataset\.yaml"):
        fb.add_dataset(place, tmp_path / "a")


def test_new_dataset_has_its_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
    qrels = Path("datasets/tiny/qrels.txt")
    files = {name: f"{name}.trec" for name in ("a", "b")}
    for name, file in files.items():
        fb.load_dataset("tiny").runs[name].to_trec(file)
    made = fb.new_dataset("datasets/mine", files, qrels=qrels)
    assert list(made.to_pandas()["check"]) == [each.check for each in made.findings]
    assert fb.load_dataset("mine").name == made.name
    assert repr(made).startswith(f"NewDataset('{made.name}', {len(made.findings)} checks")
    with pytest.raises(FusionBenchError, match="unknown reranker 'c'"):
        fb.new_dataset("other", {}, qrels=qrels, score_spaces={"c": "unit"})


def test_sampled_log_is_that_of_the_command(tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "log.txt"
    log.write_text("red shoes\nred shoes\nblue hat\ngreen tea set\n", encoding="utf-8")
    sample = fb.sample_log(log, n=2, seed=1)
    words = ["queries", "sample", str(log), "--n", "2", "--seed", "1", "--json"]
    assert main([*words, "--out", str(tmp_path / "q.jsonl")]) == 0
    record = json.loads(capsys.readouterr().out)["sample"]
    assert list(sample.to_pandas()["id"]) == [row["id"] for row in record["queries"]]
    assert repr(sample) == "QuerySample(2 queries)"
