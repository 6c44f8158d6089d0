"""The data of a page, and the documents of a query."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.checks.records import LintFinding
from fusion_bench.evaluation.details.collector import DetailsCollector
from fusion_bench.evaluation.details.report_details import ReportDetails
from fusion_bench.evaluation.report_changes import find_changes
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.report.html.pages import (
    encode_values,
    evaluation_data,
    evaluation_html,
    readable_text,
)
from tests import tiny
from tests.report import cases
from tests.report.cases import PRIMARY, SECOND
from tests.report.html.pages import page_data
from tests.report.html.test_render import EVIL
from tests.tiny import DATASET, EXPERIMENT, edit


def decoded(encoded: dict[str, list[object]]) -> list[list[object]]:
    distinct, rows = encoded["distinct"], encoded["rows"]
    return [[None if i < 0 else distinct[i] for i in row] for row in rows]  # type: ignore[attr-defined]


def test_values_stand_once_with_all_their_digits_or_as_gaps() -> None:
    rows: list[list[float | None]] = [[0.1, None, 1 / 3], [1 / 3, 0.1, math.nan]]
    encoded = encode_values(rows)
    assert encoded["distinct"] == [0.1, 1 / 3]
    assert decoded(encoded) == [[0.1, None, 1 / 3], [1 / 3, 0.1, None]]
    assert json.loads(json.dumps(encoded)) == encoded
    assert encode_values([[None, None]]) == {"distinct": [], "rows": [[-1, -1]]}
    assert encode_values(np.zeros((1, 0)).tolist()) == {"distinct": [], "rows": [[]]}


def test_a_collection_has_systems_by_mean_then_bounds() -> None:
    collection = cases.full()
    (data,) = evaluation_data(cases.report(collection))["collections"]
    groups = {row["name"]: row["group"] for row in data["systems"]}
    assert groups == {
        "better one": "better",
        "base": "baseline",
        "worse one": "worse",
        "best single source": "floor",
        "best source per query": "ceiling",
        "perfect order": "ceiling",
    }
    assert (data["primary"], data["baseline"], data["best"]) == (PRIMARY, "base", "better one")
    assert data["measures"] == [PRIMARY, SECOND]
    first = data["systems"][0]
    row = collection.system("better one")
    assert first["means"] == [row.measures[name].mean for name in (PRIMARY, SECOND)]
    comparison = collection.comparison("better one", PRIMARY)
    assert comparison is not None
    assert first["difference"]["value"] == comparison.difference
    assert data["systems"][1]["difference"] is None
    assert all(each["bounds"] == [None, None] for each in data["systems"])  # complete judgments
    for i, name in enumerate((PRIMARY, SECOND)):
        values = [list(collection.system(each).measures[name].values) for each in groups]
        assert decoded(data["values"][i]) == values


@pytest.mark.parametrize(
    ("types", "slices", "shown"),
    [
        ((None,) * 3, {}, {}),
        (("a", "a", "a"), {}, {}),
        (("a", None, "a"), {}, {"type": ["a", None, "a"]}),
        (("a", "a", "a"), {"language": ("ja", "en", "ja")}, {"language": ["ja", "en", "ja"]}),
    ],
)
def test_only_fields_with_two_values_are_slices(
    types: tuple[str | None, ...], slices: dict[str, tuple[str, ...]], shown: dict[str, list[str]]
) -> None:
    report = cases.report(cases.full(types=types, slices=slices))
    assert evaluation_data(report)["collections"][0]["slices"] == shown


def test_the_data_has_what_lint_found_and_what_changed() -> None:
    finding = LintFinding(id="rule", severity="note", message="a\x1bb", systems=("base",))
    report = cases.report(cases.full()).model_copy(update={"lint": (finding,)})
    data = evaluation_data(report)
    assert data["change"] is None
    assert data["lint"] == [finding.model_dump(mode="json") | {"message": "a\\x1bb"}]
    change = find_changes(report, report)
    data = evaluation_data(report, change=change)
    assert data["change"] == json.loads(json.dumps(change.to_dict()))


# ── details data


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
        assert text.startswith("<script>alert(1)<")
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
