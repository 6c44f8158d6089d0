"""``.details()`` of what ``compare`` and ``run_experiment`` return."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import fusion_bench as fb
from tests import tiny
from tests.api.cases import QRELS, RUNS


def test_details_are_computed_once() -> None:
    found = fb.compare(QRELS, RUNS, ["bm25", "rrf"], "RR@10", detail=["rrf"])
    details = found.details()
    assert found.details() is details
    assert details.detailed == ("bm25", "rrf")
    assert details.relevant.to_pandas().columns.tolist()[-2:] == ["bm25 (system)", "rrf"]


def test_a_wrong_name_is_an_error() -> None:
    with pytest.raises(fb.FusionBenchError, match="unknown system 'rrff'"):
        fb.compare(QRELS, RUNS, ["bm25", "rrf"], "RR@10", detail=["rrff"])


def test_a_report_on_disk_has_no_details(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    report = fb.run_experiment(root / tiny.EXPERIMENT, detail=["two"])
    path = root / "report.json"
    path.write_text(report.model_dump_json(), encoding="utf-8")
    pickled = pickle.loads(pickle.dumps(report))  # noqa: S301 - our own
    for other in (fb.read_report(path), pickled, copy.deepcopy(report)):
        assert other == report
        with pytest.raises(fb.FusionBenchError, match="has no details"):
            other.details()
    assert report.details().collection("tiny").detailed == ("one", "two")
    assert report.details() is report.details()
