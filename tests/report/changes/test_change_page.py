"""What the page of two reports says, and the data that it draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusion_bench.checks.records import JudgeInfo
from fusion_bench.evaluation.compared_reports import add_comparisons
from fusion_bench.evaluation.report_changes import find_changes
from fusion_bench.evaluation.report_file import Report
from fusion_bench.report.change_page import build_change_page, change_number
from fusion_bench.report.html.pages import change_html
from fusion_bench.report.page import Page
from tests.evaluation.report_changes.test_paired_changes import BEFORE, BETTER, OLD, of_values
from tests.report import cases
from tests.report.cases import HOSTILE, PRIMARY, fused
from tests.report.html.pages import page_data, parse_page


def page_of(old: Report, new: Report) -> Page:
    change = add_comparisons(find_changes(old, new), old, new)
    return build_change_page(change, old, new, ["a.json", "b.json"])


def html_of(old: Report, new: Report) -> str:
    change = add_comparisons(find_changes(old, new), old, new)
    return change_html(change, old, new, page=build_change_page(change, old, new))


def data_of(old: Report, new: Report) -> list[dict[str, Any]]:
    collections: list[dict[str, Any]] = page_data(html_of(old, new))["collections"]
    return collections


def headline(old: Report, new: Report) -> str:
    finding = page_of(old, new).headline
    assert finding is not None
    return finding.text


def number(old: Report, new: Report) -> str:
    return change_number(add_comparisons(find_changes(old, new), old, new))


def marked(report: Report, **update: object) -> Report:
    collections = [each.model_copy(update=update) for each in report.collections]
    return report.model_copy(update={"collections": tuple(collections)})


NEW = of_values(("base", BEFORE - 0.1), ("mine", BETTER), ("other", BEFORE))


def test_the_verdict_stands_first_with_the_greatest_gain_and_loss() -> None:
    assert headline(OLD, NEW) == (
        f"1 better, 1 worse, 0 changed but not decided, 0 with the same values: {PRIMARY} on tiny."
    )
    finding = page_of(OLD, NEW).headline
    assert finding is not None
    gain, loss, best = finding.details
    assert gain.startswith("Greatest gain: mine, 0.4000 → 0.5000 (+0.1000 [")
    assert gain.endswith("]): better.")
    assert loss.startswith("Greatest loss: base, 0.4000 → 0.3000 (-0.1000 [")
    assert best == "The highest mean is that of mine, 0.5000; it was that of base, 0.4000."
    assert number(OLD, NEW) == "1 better, 1 worse"


def test_nothing_changed() -> None:
    assert headline(OLD, OLD) == f"No value of 3 systems changed in {PRIMARY} on tiny."
    assert number(OLD, OLD) == "no value changed"
    texts = [f.text for section in page_of(OLD, OLD).sections for f in section.findings]
    assert texts[0].startswith("Nothing: the settings of the experiment")
    assert texts[1:] == ["No value of any system changed."]
    assert data_of(OLD, OLD) == []
    assert 'data-views="collection' not in html_of(OLD, OLD).partition("<script")[0]


def test_what_cannot_be_tested_has_differences_without_verdicts() -> None:
    new = of_values(("base", BEFORE), ("mine", BETTER), digests={"qrels": "1" * 64})
    assert headline(OLD, new) == f"1 of 2 systems changed in {PRIMARY} on tiny: not tested."
    texts = [f.text for section in page_of(OLD, new).sections for f in section.findings]
    assert "tiny: the judgments differ, so no difference has an interval or a verdict." in texts
    (collection,) = data_of(OLD, new)
    mine = next(row for row in collection["systems"] if row["name"] == "mine")
    assert (mine["group"], mine["difference"]["low"]) == ("open", None)
    assert mine["difference"]["verdict"] == "not tested"
    assert number(OLD, new) == "2 systems changed"


def test_reports_without_a_common_collection() -> None:
    (collection,) = NEW.collections
    other = cases.report(collection.model_copy(update={"name": "another"}))
    assert headline(OLD, other) == "The reports have no collection in common."
    assert number(OLD, other) == "not comparable"
    assert data_of(OLD, other) == []


def test_nothing_in_common_is_not_called_unchanged() -> None:
    strange = of_values(("base", BEFORE), queries=tuple(f"p{i}" for i in range(40)))
    assert headline(OLD, strange) == (
        f"{PRIMARY} on tiny cannot be compared: the reports have no query with values of the "
        "measure in common."
    )
    assert number(OLD, strange) == "not comparable"
    others = of_values(("new one", BEFORE))
    assert headline(OLD, others).endswith("the reports have no system in common.")
    assert data_of(OLD, others) == [] == data_of(OLD, strange)


def test_settings_that_changed_alike_share_a_row() -> None:
    def report(runs: tuple[str, ...]) -> Report:
        rows = (fused("mine", 0.1, 0.2), fused("other", 0.1, 0.3))
        config = {"runs": list(runs)}
        changed = tuple(row.model_copy(update={"config": config}) for row in rows)
        base = fused("base", 0.1, 0.1)
        return cases.report(cases.collection(base, *changed, judgments="complete"))

    (section, *_) = page_of(report(("a",)), report(("a", "b"))).sections
    (table,) = section.tables
    assert [row.cells for row in table.rows] == [("mine, other", "runs", '["a"]', '["a", "b"]')]


def test_each_system_has_its_values_then_and_now() -> None:
    (collection,) = data_of(OLD, NEW)
    names = [row["name"] for row in collection["systems"]]
    assert names == ["mine", "other", "base", "gone"]
    groups = {row["name"]: (row["group"], row["kind"]) for row in collection["systems"]}
    assert groups == {
        "mine": ("better", "system"),
        "base": ("worse", "system"),
        "other": ("new", "new"),
        "gone": ("gone", "gone"),
    }

    def values(key: str, name: str) -> list[float | None]:
        table = collection[key][0]
        indices = table["rows"][names.index(name)]
        return [None if i < 0 else table["distinct"][i] for i in indices]

    np.testing.assert_array_equal(values("values", "mine"), BETTER)
    np.testing.assert_array_equal(values("then", "mine"), BEFORE)
    assert set(values("then", "other")) == {None} == set(values("values", "gone"))
    assert collection["best"] in {"mine", "base"}


def test_queries_of_both_reports_only() -> None:
    (collection,) = NEW.collections
    queries = ("new query", *collection.queries[:-1])
    rows = data_of(OLD, cases.report(collection.model_copy(update={"queries": queries})))
    assert rows[0]["queries"] == list(collection.queries[:-1])
    assert {len(row) for row in rows[0]["then"][0]["rows"]} == {39}
    np.testing.assert_array_equal(
        [rows[0]["values"][0]["distinct"][i] for i in rows[0]["values"][0]["rows"][0]], BETTER[1:]
    )


def test_names_stay_text() -> None:
    script = "</script><script>alert(1)</script>"
    new = of_values(("base", BEFORE), (HOSTILE, BEFORE), (script, BEFORE), name="<i>")
    old = of_values(("base", BETTER), (HOSTILE, BETTER), (script, BETTER), name="<i>")
    html = html_of(old, new)
    assert script in parse_page(html).text
    assert html.count("<script") == 2
    assert "<i>" not in html.replace("&lt;i&gt;", "")
    assert HOSTILE in [row["name"] for row in page_data(html)["collections"][0]["systems"]]


def test_machine_judges_and_synthetic_queries_stand_before_anything_else() -> None:
    judge = JudgeInfo(family="gpt")
    old, new = marked(OLD, judge=judge), marked(NEW, judge=judge, synthetic_queries=7)
    first = page_of(old, new).sections[0]
    assert [each.key for each in first.findings] == ["machine judge", "synthetic queries"]
    judged, written = (each.text for each in first.findings)
    assert judged.startswith("The grades are those of a machine judge of the family gpt.")
    assert written.startswith("In the new report: The queries (7) are synthetic")
    (only,) = page_of(marked(OLD, judge=judge), NEW).sections[0].findings
    assert only.text.startswith("In the old report: The grades are those of a machine judge")
    assert "judge" not in {section.key for section in page_of(OLD, NEW).sections}
