from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.evaluation.details.collector import DetailsCollector, ReportDetails
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.report.html.evaluation_data import evaluation_data, readable_text
from fusion_bench.report.html.pages import evaluation_html
from tests import tiny
from tests.report.html.pages import page_data
from tests.report.html.test_render import EVIL
from tests.tiny import DATASET, EXPERIMENT, edit


def evaluated(root: Path, limit: int = 10**6) -> tuple[Report, ReportDetails]:
    experiment, source = read_experiment(root / EXPERIMENT)
    collector = DetailsCollector(limit=limit)
    report = run_experiment(experiment, source, folders=[root / "datasets"], details=collector)
    return report, collector.make_details(report)


def data_of(root: Path, limit: int = 10**6) -> dict[str, Any]:
    data: dict[str, Any] = evaluation_data(*evaluated(root, limit))["collections"][0]
    return data


def test_relevant_documents_have_the_ranks_of_the_record(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    record = evaluated(root)[1].collections[0].relevant
    data = data_of(root)["details"]
    relevant = data["relevant"]
    assert [data["documents"][i] for i in relevant["documents"]] == ["d1", "d3", "d4"]
    assert relevant["source_ranks"] == record.source_ranks.tolist() == [[2, 2, 2], [1, 2, 1]]
    assert relevant["system_ranks"] == record.system_ranks.tolist()
    assert (relevant["sources"], relevant["systems"]) == (["a", "b"], ["one", "two"])
    assert data["kept"] is None


def test_a_top_has_every_term_of_each_score(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    record = evaluated(root)[1].collections[0].top_documents("one")
    data = data_of(root)["details"]
    (top,) = (top for top in data["top"] if top["system"] == "one")
    assert top["labels"] == list(record.labels)
    assert [data["documents"][i] for i in top["documents"]] == list(record.documents)
    assert top["scores"] == pytest.approx(record.scores.tolist(), rel=1e-11)
    for values, terms in zip(top["terms"], record.terms.tolist(), strict=True):
        known = [float("nan") if value is None else value for value in values]
        assert known == pytest.approx(terms, rel=1e-11, nan_ok=True)
    for row, score in enumerate(top["scores"]):
        assert sum(values[row] or 0 for values in top["terms"]) == pytest.approx(score)
    graded = zip(record.grades.tolist(), record.judged.tolist(), strict=True)
    assert top["grades"] == [grade if is_judged else None for grade, is_judged in graded]
    assert None in top["grades"]


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    data = data_of(tiny.make(tmp_path), limit=1)["details"]
    assert data["kept"] == []
    assert data["relevant"]["query"] == []


def test_texts_from_outside_stay_texts(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    evil = EVIL.replace("\x00", "\x01")
    edit(root, DATASET, "queries: ", "documents: docs.jsonl\nqueries: ")
    name = "datasets/tiny/queries.jsonl"
    edit(root, name, '"q1", ', f'"q1", "text": {json.dumps(evil)}, ')
    line = json.dumps({"id": "d1", "title": evil, "text": evil})
    (root / "datasets/tiny/docs.jsonl").write_text(f"{line}\n", encoding="utf-8")
    html = evaluation_html(*evaluated(root))
    assert evil not in html
    data = page_data(html)["collections"][0]
    texts = [data["texts"][0], *filter(None, data["details"]["document_texts"])]
    assert len(texts) == 2
    for text in texts:
        assert text.startswith("<script>alert(1)</script>]]>&amp; ")
        assert not set(text) & set("\u2028\x01\u202e")
        assert "\\u202e" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\r\nc\u2028d", "a b c d"),
        ("\x00\x1b[31m", "\\x00\\x1b[31m"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("\ud83d", "\\ud83d"),
        ("क्‍ष 👩‍🔬 \u200f", "क्‍ष 👩‍🔬 \u200f"),
    ],
)
def test_running_text_keeps_its_script_and_loses_its_controls(text: str, shown: str) -> None:
    assert readable_text(text) == shown
