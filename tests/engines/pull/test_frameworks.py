"""Pulls from retriever objects of LangChain, LlamaIndex and Haystack: their own, and made ones."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

import fusion_bench
from benchmarks.studies.pulled_engines.orders import compare_orders
from fusion_bench.data.run import Run
from fusion_bench.engines.connectors._base import build_connector
from fusion_bench.engines.options import PullOptions
from fusion_bench.engines.pull import PulledDataset, pull_dataset
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from tests.engines.pull import framework_objects, framework_stores
from tests.engines.pull.cases import write_queries
from tests.engines.pull.framework_stores import DEPTH, QUERIES, TEXTS, embed

MODULE = "tests.engines.pull.framework_objects"
STORES = framework_stores.__name__


def pull(folder: Path, engine: str, settings: dict[str, Any], **options: Any) -> PulledDataset:  # noqa: ANN401 - of the pull
    connector = build_connector(engine, settings)
    queries = write_queries(folder)
    return pull_dataset(connector, queries, PullOptions(out=folder / "mine", **options))


def read_lists(folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    dataset = load_dataset(folder / "mine/dataset.yaml", every_query=True)
    return {name: run.to_dict() for name, run in dataset.runs.items()}


def make(name: str, **settings: Any) -> dict[str, Any]:  # noqa: ANN401 - of a leg
    return {"retriever": f"{MODULE}:{name}", **settings}


def test_langchain(tmp_path: Path) -> None:
    legs = {
        "words": make("make_langchain"),
        "points": make("make_langchain", id_field="key", score_field="points"),
        "store": make("make_langchain_store", depth=7),
    }
    fused = make("make_langchain", fusion={"c": 60})
    pulled = pull(tmp_path, "langchain", {"legs": legs, "fused": fused}, texts=True)
    lists = read_lists(tmp_path)
    assert lists["words"]["q1"] == {"a": 1.0, "b": 0.5}  # no score: 1/rank
    assert lists["points"]["q1"] == {"A": 2.0, "B": 1.0}
    assert len(lists["store"]["q1"]) == 7
    assert "langchain-core" in pulled.record.fingerprint
    experiment = (tmp_path / "mine/experiment.yaml").read_text(encoding="utf-8")
    assert "dialect: langchain" in experiment
    assert '"text": "alpha one"' in (tmp_path / "mine/documents.jsonl").read_text(encoding="utf-8")


def test_llamaindex(tmp_path: Path) -> None:
    legs = {
        "words": make("make_llamaindex"),
        "docs": make("make_llamaindex", id_field="ref_doc_id"),
    }
    pull(tmp_path, "llamaindex", {"legs": legs})
    assert read_lists(tmp_path)["words"]["q1"] == {"a": 2.0, "b": 1.0}
    assert read_lists(tmp_path)["docs"]["q2"] == {"doc-c": 1.0}


def test_haystack(tmp_path: Path) -> None:
    near = make("make_haystack_vectors", form="vector", vectors=f"{MODULE}:embed")
    pull(tmp_path, "haystack", {"legs": {"bm25": make("make_haystack"), "near": near}}, depth=2)
    assert [*read_lists(tmp_path)["bm25"]["q1"]] == ["a", "b"]
    assert read_lists(tmp_path)["near"]["q1"] == {"c": 1.0, "b": 0.625}


HITS = {
    "langchain": SimpleNamespace(id="x", page_content="t", metadata={"far": 0.5}),
    "llamaindex": SimpleNamespace(
        node=SimpleNamespace(node_id="x", metadata={"far": 0.5}, get_content=lambda: "t"), score=1.0
    ),
    "haystack": SimpleNamespace(id="x", score=1.0, content="t", meta={"far": 0.5}),
}


@pytest.mark.parametrize("engine", HITS)
def test_objects_of_any_package_do(tmp_path: Path, engine: str) -> None:
    framework_objects.PLAIN.documents = [HITS[engine]]
    legs = {"own": make("PLAIN"), "far": make("PLAIN", score_field="far", distance=True)}
    pull(tmp_path, engine, {"legs": legs}, texts=True)
    assert read_lists(tmp_path)["own"]["q1"] == {"x": 1.0}
    assert read_lists(tmp_path)["far"]["q1"] == {"x": -0.5}
    documents = (tmp_path / "mine/documents.jsonl").read_text(encoding="utf-8")
    assert documents == '{"id": "x", "text": "t"}\n'


@pytest.mark.parametrize("engine", HITS)
def test_a_document_without_an_id_is_malformed(tmp_path: Path, engine: str) -> None:
    framework_objects.PLAIN.documents = [{"no": "document"}]
    with pytest.raises(ProviderError, match="hit without"):
        pull(tmp_path, engine, {"legs": {"a": make("PLAIN")}})


@pytest.mark.parametrize(
    ("engine", "leg", "message"),
    [
        ("langchain", "NONE", "no method ainvoke"),
        ("llamaindex", "NONE", "no method aretrieve"),
        ("haystack", "NONE", "no method run_async"),
        ("haystack", "no_such", "loaded: AttributeError"),
        ("langchain", "embed", "TypeError"),
    ],
)
def test_what_is_no_retriever(tmp_path: Path, engine: str, leg: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        pull(tmp_path, engine, {"legs": {"a": make(leg)}})


def test_the_fusion_of_a_replay_is_one_of_the_dialect() -> None:
    fused = make("PLAIN", fusion={"method": "nonsense"})
    with pytest.raises(ConfigError, match="fused"):
        build_connector("langchain", {"legs": {"a": make("PLAIN")}, "fused": fused})


def pull_stores(
    folder: Path, engine: str, legs: dict[str, Any], fused: dict[str, Any] | None
) -> Path:
    def name(settings: dict[str, Any]) -> dict[str, Any]:
        return {**settings, "retriever": f"{STORES}:{settings['retriever']}"}

    settings = {
        "legs": {leg: name(given) for leg, given in legs.items()},
        "fused": None if fused is None else name(fused),
    }
    out = folder / "mine"
    fusion_bench.pull(engine, QUERIES, out, settings=settings, depth=DEPTH, texts=True)
    return out


def read_orders(runs: dict[str, Run], name: str) -> dict[str, list[str]]:
    return {query: [*documents] for query, documents in runs[name].to_dict().items()}


def expected_orders(seed: str) -> dict[str, list[str]]:
    """All documents by the cosine of their vectors with the query's."""
    vectors = np.array([embed(text, seed) for text in TEXTS.values()])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {
        query: [[*TEXTS][n] for n in np.argsort(-(vectors @ np.array(embed(text, seed))))]
        for query, text in QUERIES.items()
    }


def check_replay(out: Path, engine: str) -> None:
    """The framework's own fusion and its replay: one order but for equal scores."""
    dataset = fusion_bench.load_dataset(out)
    systems = yaml.safe_load((out / "experiment.yaml").read_text(encoding="utf-8"))["systems"]
    replay = fusion_bench.fuse(dataset, System("replay", **{**systems["replay"], "top_k": None}))
    own, ours = (
        {query: [*documents.items()] for query, documents in run.to_dict().items()}
        for run in (dataset.runs["engine-fused"], replay)
    )
    orders = compare_orders(own, ours, DEPTH)
    assert orders.different == 0, orders.first
    assert orders.same + orders.equal == len(QUERIES)
    export = fusion_bench.export(out / "experiment.yaml", engine, name="replay")
    assert export.fidelity == "exact"


def test_vector_stores_of_langchain(tmp_path: Path) -> None:
    legs = {"near": {"retriever": "langchain_near"}, "far": {"retriever": "langchain_far"}}
    out = pull_stores(tmp_path, "langchain", legs, None)
    dataset = fusion_bench.load_dataset(out)
    for name in legs:
        assert read_orders(dict(dataset.runs), name) == expected_orders(name)
    fused = fusion_bench.fuse(dataset, "rrf").to_dict()
    for query, documents in fused.items():
        places = [expected_orders(seed)[query] for seed in legs]
        scores = {name: sum(1 / (61 + order.index(name)) for order in places) for name in documents}
        assert documents == pytest.approx(scores)


def test_indexes_of_llamaindex_and_their_fusion(tmp_path: Path) -> None:
    legs = {"near": {"retriever": "llamaindex_near"}, "far": {"retriever": "llamaindex_far"}}
    fused = {"retriever": "llamaindex_fused", "fusion": {"method": "reciprocal_rerank"}}
    out = pull_stores(tmp_path, "llamaindex", legs, fused)
    for name in legs:
        runs = dict(fusion_bench.load_dataset(out).runs)
        assert read_orders(runs, name) == expected_orders(name)
    check_replay(out, "llamaindex")


def test_bm25_and_vectors_of_haystack_and_their_joiner(tmp_path: Path) -> None:
    vectors = {"form": "vector", "vectors": f"{STORES}:embed_all"}
    legs = {
        "bm25": {"retriever": "haystack_bm25"},
        "near": {"retriever": "haystack_near", **vectors},
    }
    fused = {"retriever": "HaystackHybrid", "fusion": {"method": "reciprocal_rank_fusion"}}
    out = pull_stores(tmp_path, "haystack", legs, fused)
    runs = dict(fusion_bench.load_dataset(out).runs)
    assert read_orders(runs, "near") == expected_orders("near")
    for query, documents in read_orders(runs, "bm25").items():
        words = set(QUERIES[query].split())
        matching = {name for name, text in TEXTS.items() if words & set(text.split())}
        assert set(documents[: len(matching)]) == matching
    check_replay(out, "haystack")
