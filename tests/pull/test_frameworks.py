"""Pulls from retriever objects of LangChain, LlamaIndex and Haystack, where they are installed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.io.dataset import load_dataset
from fusion_bench.pull.engine_config import build_connector
from fusion_bench.pull.run import PulledDataset, PullOptions, pull_dataset
from tests.pull import framework_objects
from tests.pull.cases import write_queries

MODULE = "tests.pull.framework_objects"


def pull(folder: Path, engine: str, settings: dict[str, Any], **options: Any) -> PulledDataset:  # noqa: ANN401 - of the pull
    connector = build_connector(engine, settings)
    queries = write_queries(folder)
    return pull_dataset(PullOptions(connector, queries, folder / "mine", **options))


def read_lists(folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    dataset = load_dataset(folder / "mine/dataset.yaml", every_query=True)
    return {name: run.to_dict() for name, run in dataset.runs.items()}


def make(name: str, **settings: Any) -> dict[str, Any]:  # noqa: ANN401 - of a leg
    return {"retriever": f"{MODULE}:{name}", **settings}


def test_langchain(tmp_path: Path) -> None:
    pytest.importorskip("langchain_core")
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
    pytest.importorskip("llama_index.core")
    legs = {
        "words": make("make_llamaindex"),
        "docs": make("make_llamaindex", id_field="ref_doc_id"),
    }
    pull(tmp_path, "llamaindex", {"legs": legs})
    assert read_lists(tmp_path)["words"]["q1"] == {"a": 2.0, "b": 1.0}
    assert read_lists(tmp_path)["docs"]["q2"] == {"doc-c": 1.0}


def test_haystack(tmp_path: Path) -> None:
    pytest.importorskip("haystack")
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
    with pytest.raises(ProviderError, match="a hit without an id"):
        pull(tmp_path, engine, {"legs": {"a": make("PLAIN")}})


@pytest.mark.parametrize(
    ("engine", "leg", "message"),
    [
        ("langchain", "NONE", "is no retriever: it has no method ainvoke or invoke"),
        ("llamaindex", "NONE", "it has no method aretrieve or retrieve"),
        ("haystack", "NONE", "it has no method run_async or run"),
        ("haystack", "no_such", "cannot be loaded: AttributeError"),
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
