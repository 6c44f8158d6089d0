"""A pipeline of an experiment file: what it takes from the file and from its dataset."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from fusion_bench import Pipeline, Query
from fusion_bench.errors import ConfigError, FusionBenchError, UnknownNameError
from fusion_bench.serving.live.final_list import LiveResult

DATASET = """\
name: mine
qrels: qrels.txt
queries: queries.jsonl
runs:
  bm25: {path: bm25.trec, roles: [keyword], source_ties: file, drop_zero_scores: true}
  dense: {path: dense.trec, roles: [question, semantic], rank_from: column}
  meta: {path: meta.trec, when: {intent: [meta], language: [ja, fr]}}
rerank:
  stored: {path: stored.trec, score_space: logit}
"""
EXPERIMENT = """\
dataset: mine
baseline: v1
ties: first_seen
systems:
  v1: {runs: [bm25, dense]}
  v2: {runs: [bm25, dense, meta], fusion: rrf_v2, top_k: 2}
  reranked: {runs: [bm25, dense], blend: {method: replace, reranker: stored}}
  trained: {runs: [bm25, dense], fusion: {method: map_fuse, folds: 2}}
gate: {system: v2, checks: {nDCG@10: {max_drop: 0.01}}}
"""
LISTS: dict[str, Any] = {
    "bm25": [("a", 2.0), ("b", 2.0), ("z", 0.0)],
    "dense": [("c", 0.1), ("a", 0.9)],
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
    for name, text in {
        "experiments/mine.yaml": EXPERIMENT,
        "datasets/mine/dataset.yaml": DATASET,
        "datasets/mine/queries.jsonl": '{"id": "q1", "intent": "meta", "language": "ja"}\n',
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")


def search(
    system: str | None,
    lists: dict[str, Any],
    query: str | Query = "q",
    **options: Any,  # noqa: ANN401
) -> LiveResult:
    with Pipeline.from_experiment("experiments/mine.yaml", system, **options) as pipeline:
        return pipeline.search_sync(query, lists)


def test_the_dataset_says_how_its_lists_are_read() -> None:
    found = search("v1", LISTS)
    assert [document.id for document in found.documents] == ["a", "c", "b"]  # z is padding
    sources = {d.id: {hit.list: hit.rank for hit in d.sources} for d in found.documents}
    assert sources == {"a": {"bm25": 1, "dense": 2}, "c": {"dense": 1}, "b": {"bm25": 2}}


def test_the_gated_system_with_its_roles_and_conditions() -> None:
    asked: list[str] = []

    def meta(query: str) -> list[tuple[str, float]]:
        asked.append(query)
        return [("m", 1.0)]

    lists = {**LISTS, "meta": meta}
    off = search(None, lists, Query("7", "q", intent="meta", fields={"language": "en"}))
    assert off.switched_off == {"meta": "language is en"}
    assert [document.id for document in off.documents] == ["a", "c"]
    assert {hit.list: hit.weight for hit in off.documents[0].sources} == {"bm25": 1, "dense": 2}
    on = search(None, lists, Query("7", "q", intent="meta", fields={"language": "ja"}))
    assert (on.switched_off, asked) == ({}, ["q"])


def test_stored_scores_and_names_mean_what_the_dataset_says() -> None:
    lists = {**LISTS, "stored": {"a": -2.0, "b": 0.0, "c": 3.0}}
    found = search("reranked", lists)
    assert dict(found.ranked) == pytest.approx({"c": 0.9525741, "b": 0.5, "a": 0.1192029})
    with pytest.raises(UnknownNameError, match="unknown dataset 'other'"):
        Pipeline.from_experiment("experiments/mine.yaml", "v1", dataset="other")


def test_the_dataset_need_not_be_there() -> None:
    shutil.rmtree("datasets")
    roles = {"bm25": ["keyword"], "dense": ["question"], "meta": []}
    found = search("v2", {**LISTS, "meta": []}, roles=roles)
    assert [document.id for document in found.documents] == ["a", "b"]  # by score, and no padding
    with pytest.raises(ConfigError, match=r"unknown dataset 'mine'"):
        search("v2", LISTS)
    with pytest.raises(ConfigError, match="'trained' is trained"):
        search("trained", LISTS, roles=roles)


def test_overrides_and_the_kill_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search("v2", {**LISTS, "meta": []}, overrides=["systems.v2.top_k=1"])
    assert len(found.documents) == 1
    monkeypatch.setenv("RAG_FUSION_V2_ENABLED", "false")
    pipeline = Pipeline.from_experiment("experiments/mine.yaml", "v2")
    assert pipeline.system.fusion.method == "rrf"


@pytest.mark.parametrize(
    ("change", "system", "problem"),
    [
        ("", "v3", "unknown system 'v3'"),
        ("gate: {system", None, "system=…: 'v1', 'v2'"),
        ("dataset: mine", "v1", "dataset=…: mine, other"),
        ("fusion: rrf_v2", "v2", "fusion method 'rrf_v3'"),
    ],
)
def test_what_an_experiment_leaves_open(change: str, system: str | None, problem: str) -> None:
    text = EXPERIMENT
    if change.startswith("gate"):
        text = text[: text.index("gate:")]
    elif change.startswith("dataset"):
        text = text.replace(change, "datasets: [mine, other]")
    elif change:
        text = text.replace(change, "fusion: rrf_v3")
    Path("experiments/mine.yaml").write_text(text)
    with pytest.raises(FusionBenchError) as caught:
        Pipeline.from_experiment("experiments/mine.yaml", system)
    assert problem in str(caught.value)


def test_a_trained_system_is_fitted_to_the_judgments() -> None:
    folder = Path("datasets/mine")
    qrels = [f"q{n} 0 {'abcd'[n % 4]} 1" for n in range(12)]
    for name in ("bm25", "dense"):
        rows = [
            f"q{n} Q0 {'abcd'[(n + i) % 4]} {i + 1} {9 - i} x" for n in range(12) for i in range(3)
        ]
        (folder / f"{name}.trec").write_text("\n".join(rows))
    (folder / "qrels.txt").write_text("\n".join(qrels))
    pipeline = Pipeline.from_experiment("experiments/mine.yaml", "trained")

    async def go() -> tuple[LiveResult, LiveResult]:
        async with pipeline:
            new = await pipeline.search("q", LISTS)
            return new, await pipeline.search(Query("q3", "q"), LISTS)

    new, known = asyncio.run(go())
    assert new.documents[0].score > 0
    assert {document.id for document in new.documents} == {d.id for d in known.documents}
