"""New data in Python: commands, datasets, exports."""

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import fusion_bench
import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.errors import ConfigError, FusionBenchError
from tests import tiny
from tests.api.cases import QRELS, RUNS
from tests.gate.cases import EXPERIMENT, make_project
from tests.importers.datasets.collections import make_beir
from tests.models.rerank import collection

PNG = b"\x89PNG"


def test_a_gate_passes_after_an_update_and_fails_on_a_worse_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_project(tmp_path))
    assert fb.gate(EXPERIMENT).exit_code == 2  # there is no baseline yet
    assert fb.gate(EXPERIMENT, update="first baseline").exit_code == 0
    tiny.edit(tmp_path, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    verdict = fb.gate(EXPERIMENT)
    assert verdict.exit_code == 1
    assert verdict.headline in repr(verdict)
    assert len(repr(verdict).splitlines()) == 1
    assert set(verdict.to_pandas()["status"]) == {"regressed"}
    assert "regressed" in verdict._repr_html_()
    with pytest.raises(FusionBenchError, match="explain why"):
        fb.gate(EXPERIMENT, update=" ")


@pytest.fixture
def scorer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A reranker in a module that can be imported, and where everything is written."""
    code = """
from fusion_bench.models.reranker_protocol import Identity, Reply

class Overlap:
    identity = Identity(provider="overlap", model="words", space="unit")
    batch = 100

    async def score(self, query, documents):
        words = set(query.split())
        return Reply(tuple(len(words & set(text.split())) / len(words) for text in documents))
"""
    (tmp_path / "overlap_scorer.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "overlap_scorer", raising=False)
    import_module("overlap_scorer")  # as the user's own code does
    monkeypatch.chdir(collection.make(tmp_path))
    return {
        "settings": {"max_tokens": None, "object": "overlap_scorer:Overlap"},
        "store": tmp_path / "scores.sqlite",
    }


@pytest.mark.slow
def test_a_list_is_scored_by_a_known_provider(scorer: dict[str, Any]) -> None:
    written = fb.rerank("tiny", "a", "python", **scorer)
    assert written.path.name == "a-python.jsonl"
    assert not written.meta.degraded
    assert len(fb.load_run(written.path)) == 4

    async def cell() -> Path:
        return fb.rerank("tiny", "a", "python", **scorer).path

    assert asyncio.run(cell()).exists()
    with pytest.raises(FusionBenchError, match="cohre"):
        fb.rerank("tiny", "a", "cohre", store=scorer["store"])


def test_figures_show_themselves_in_a_notebook(tmp_path: Path) -> None:
    found = fb.compare(QRELS, RUNS, measures="RR@10")
    for kind in (None, "means"):
        figure: Any = found.plot(kind)
        assert figure._repr_png_().startswith(PNG)
    path = tmp_path / "report.json"
    path.write_text(found.report.model_dump_json())
    assert fb.plot(path).axes
    assert fb.plot(found.report, "differences").axes


@pytest.mark.parametrize(
    ("found", "kind", "message"),
    [
        (3, None, "cannot draw int"),
        ("nowhere.json", None, "no such file"),
        (fb.compare(QRELS, RUNS), "mean", "unknown plot 'mean'; did you mean 'means'"),
        (fb.compare(QRELS, RUNS, "rrf"), "differences", "nothing to show"),
    ],
)
def test_what_cannot_be_drawn_says_why(found: object, kind: str | None, message: str) -> None:
    with pytest.raises(FusionBenchError, match=message):
        fb.plot(found, kind)


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


SYSTEM = fusion_bench.System("s", ["a", "b"], {"method": "rrf", "k": 20}, depth=10, top_k=10)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tiny.make(tmp_path))
    return tmp_path


def test_a_system_at_hand(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--vector b"):
        fusion_bench.export(SYSTEM, "elasticsearch")
    report = fusion_bench.export(SYSTEM, "elasticsearch", vector=["b"])
    assert (report.fidelity, report.system) == ("exact", "s")
    [path] = report.write(tmp_path / "out")
    request = json.loads(path.read_text())
    assert request["retriever"]["rrf"]["rank_constant"] == 20
    path.write_text("")
    with pytest.raises(ConfigError, match="differs"):
        report.write(tmp_path / "out")


@pytest.mark.usefixtures("root")
def test_exports_of_systems_experiments_and_methods_are_replayed() -> None:
    system = fusion_bench.System("s", ["a", "b"], "rrf_v2")
    report = fusion_bench.export(system, "elasticsearch", dataset="tiny", measures="RR@10")
    [replay] = report.replays
    assert (report.fidelity, replay.dataset) == ("approximate", "tiny")
    assert replay.comparison.measure == "RR@10"
    report = fusion_bench.export(tiny.EXPERIMENT, "elasticsearch", name="two")
    assert report.name == "e"
    assert [replay.queries for replay in report.replays] == [3]
    with pytest.raises(ConfigError, match=r"measures: .*file"):
        fusion_bench.export(tiny.EXPERIMENT, "elasticsearch", name="two", measures="RR@10")
    report = fusion_bench.export("rrf", "langchain", dataset="tiny", replay=True)
    assert report.config is not None
    assert report.config["runs"] == ["a", "b"]
    assert report.replays[0].changed_queries == 0


def test_what_is_no_system() -> None:
    with pytest.raises(ConfigError):
        fusion_bench.export(3, "elasticsearch")
    with pytest.raises(ConfigError, match=r"^to: .*'elastic'"):
        fusion_bench.export(SYSTEM, "elastic")
