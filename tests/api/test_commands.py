"""``gate``, ``rerank`` and ``plot``: what the commands do, from Python."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.errors import FusionBenchError
from tests import tiny
from tests.api.cases import QRELS, RUNS
from tests.gate.cases import EXPERIMENT, make_project
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
    with pytest.raises(FusionBenchError, match="say why"):
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
    monkeypatch.chdir(collection.make(tmp_path))
    return {
        "settings": {"max_tokens": None, "object": "overlap_scorer:Overlap"},
        "store": tmp_path / "scores.sqlite",
    }


def test_a_list_is_scored(scorer: dict[str, Any]) -> None:
    written = fb.rerank("tiny", "a", "python", **scorer)
    assert written.path.name == "a-python.jsonl"
    assert not written.meta.degraded
    assert len(fb.load_run(written.path)) == 4


def test_a_list_is_scored_inside_an_event_loop(scorer: dict[str, Any]) -> None:
    async def cell() -> Path:
        return fb.rerank("tiny", "a", "python", **scorer).path

    assert asyncio.run(cell()).exists()


def test_an_unknown_provider_is_named(scorer: dict[str, Any]) -> None:
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
