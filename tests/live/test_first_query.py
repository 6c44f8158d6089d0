"""The first query of a process imports nothing: its deadline is as short as that of any other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.models.rerank.server import Loopback, serving

SEARCH = """
import json, sys
import fusion_bench as fb

keys, provider = json.loads(sys.argv[1])
patient = {"timeout_ms": 6e5, "deadline": {"rerank_ms": 6e5, "total_ms": 6e5}}
retrievers = {"b": lambda query: [("d2", 0.5, "z")]}
pipeline = fb.Pipeline(
    {"runs": ["a", "b"], **keys}, rerankers={"r": provider} if provider else None,
    retrievers=retrievers, settings=patient, crag={},
)
with pipeline:
    known = set(sys.modules)
    found = pipeline.search_sync("q", {"a": [("d1", 1.0, "x"), ("d2", 0.5, "y")]})
    print(json.dumps([found.provider, found.degraded, sorted(set(sys.modules) - known)]))
"""
BLEND = {"blend": {"method": "replace", "reranker": "r"}}


def search(keys: Mapping[str, Any], provider: Mapping[str, Any] | None) -> list[Any]:
    """Provider, what degraded, and what was imported, of the first query of a process."""
    words = [sys.executable, "-c", SEARCH, json.dumps([keys, provider])]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    result: list[Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("method", ["jina", "chat", "tei"])
def test_a_reranker_behind_http(method: str) -> None:
    with serving(Loopback(method)) as state:
        url = state.url.replace("127.0.0.1", "localhost")
        model = {"model": "m"} if method == "chat" else {}
        found = search(BLEND, {"method": method, "base_url": url, "key": None, **model})
    assert found[0].startswith(f"{method}/resolved-model")
    assert found[1:] == ["", []]


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"fusion": "log_odds"},
        {"policy": {"method": "overlap_rules", "threshold": 0.5, "below": {"fusion": "borda"}}},
    ],
)
def test_without_a_reranker(keys: Mapping[str, Any]) -> None:
    assert search(keys, None) == ["fused order", "", []]
