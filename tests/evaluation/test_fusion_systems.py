"""Which configurations fuse, and which a reranker decides."""

from pathlib import Path
from typing import Any

import pytest

from fusion_bench.evaluation.results import has_idle_reranker, is_fusion, is_reranked
from tests import tiny
from tests.evaluation.test_run_experiment import collection
from tests.tiny import EXPERIMENT, edit

SINGLE: dict[str, Any] = {"runs": ["a"]}
BOTH: dict[str, Any] = {"runs": ["a", "b"]}
RERANKED: dict[str, Any] = {"runs": ["a", "b"], "blend": {"method": "position_aware"}}
IDLE: dict[str, Any] = {"runs": ["a", "b"], "blend": {"method": "linear", "beta": 0.0}}


@pytest.mark.parametrize(
    ("config", "fuses", "reranks", "idles"),
    [
        (None, False, False, False),
        (SINGLE, False, False, False),
        (BOTH, True, False, False),
        ({**BOTH, "blend": {"method": "none"}}, True, False, False),
        (RERANKED, True, True, False),
        (IDLE, True, False, True),
        ({**SINGLE, "stages": {"first": BOTH}}, True, False, False),
        ({**SINGLE, "stages": {"first": RERANKED}}, True, True, False),
    ],
)
def test_kinds(config: dict[str, Any] | None, fuses: bool, reranks: bool, idles: bool) -> None:
    assert is_fusion(config) is fuses
    assert is_reranked(config) is reranks
    assert has_idle_reranker(config) is idles


def test_every_source_is_compared_though_no_system_is_one(tmp_path: Path) -> None:
    result = collection(tiny.make(tmp_path)).fusion
    assert result is not None
    assert result.source in {"a", "b"}
    assert (result.sources, result.verdict) == (2, "not shown")


def test_no_fusion_no_result(root: Path) -> None:
    text = "dataset: tiny\nmeasures: [P@1]\nbaseline: b\nsystems: {b: {runs: [b]}}\n"
    (root / EXPERIMENT).write_text(text, encoding="utf-8")
    assert collection(root).fusion is None


def test_plain_fusions_are_compared_where_there_are_some(root: Path) -> None:
    text = (root / EXPERIMENT).read_text(encoding="utf-8")
    assert "two:" in text
    edit(root, EXPERIMENT, "  two:\n", "  plain: {runs: [a, b]}\n  two:\n")
    result = collection(root).fusion
    assert result is not None
    assert not result.is_reranked
