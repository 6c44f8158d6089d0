"""Which warnings a collection gets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fusion_bench.checks.records import ListInfo
from fusion_bench.checks.unjudged import SPARSE, UnjudgedResult
from fusion_bench.evaluation.report_records import Collection, SourceTieResult, SystemResult
from fusion_bench.report.data_warnings import data_warnings
from fusion_bench.report.evaluation_findings import collection_findings
from tests.report import cases
from tests.report.cases import PRIMARY, collection, compared, run, system, tied

BASE = system("base", 0.5, 0.4)


def warnings(found: Collection, *, v2: bool = True) -> dict[str, str]:
    result = list(data_warnings(cases.report(found, v2=v2), found))
    assert all(finding.tone == "warning" for finding in result)
    return {finding.key: finding.text for finding in result}


def test_no_warning_without_a_cause() -> None:
    assert warnings(collection(BASE, runs=(run(),))) == {}


def test_findings_come_before_warnings() -> None:
    found = cases.full()
    tones = [f.tone for f in collection_findings(cases.report(found, v2=False), found)]
    assert tones.index("warning") == len(tones) - 1


def test_a_caveat_and_a_disabled_version_2_are_warnings() -> None:
    found = collection(BASE)
    report = cases.report(found, v2=False, settings={"caveat": "Only a sample."})
    keys = [warning.key for warning in data_warnings(report, found)]
    assert keys == ["caveat", "v2 disabled"]


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (run(unanswered=1234), {"unanswered": "1,234 judged queries"}),
        (run("r", rerank=True, unanswered=1, zero_scores=5), {"unanswered": "1 judged query;"}),
        (run(zero_scores=1500), {"zero scores": "1,500 rows"}),
        (run(zero_scores=1500, drop=True), {}),
        (
            run("r", rerank=True, degraded=3, notes=["rerank list 'r' is squeezed"]),
            {"degraded": "3 queries", "scores": "Rerank list 'r' is squeezed."},
        ),
        (
            run("r", rerank=True).model_copy(update={"unread_scores": {"q1": (3, 7), "q2": (1,)}}),
            {"unread scores": "r has 3 scores that could not be read: q1: 3, 7; q2: 1."},
        ),
        (
            run().model_copy(update={"has_known_documents": False}),
            {"unmatched documents": "judged"},
        ),
    ],
)
def test_input_lists(info: ListInfo, expected: dict[str, str]) -> None:
    result = warnings(collection(BASE, runs=(info,)))
    assert list(result) == list(expected)
    assert all(text in result[key] for key, text in expected.items())


@pytest.mark.parametrize(
    ("count", "strangers", "expected"),
    [
        (1, (("Q5", "q05"),), True),
        (400, (("Q5", "q05"), ("x", None)), True),
        (400, (("x", None),), False),  # a larger list is no mistake
    ],
)
def test_queries_that_are_not_judged(
    count: int, strangers: tuple[tuple[str, str | None], ...], expected: bool
) -> None:
    info = run().model_copy(update={"unjudged_queries": count, "unmatched_queries": strangers})
    result = warnings(collection(BASE, runs=(info,)))
    assert ("unmatched queries" in result) is expected


@pytest.mark.parametrize(
    ("shares", "judgments", "highest"),
    [
        ([0.2], "pooled", None),
        ([None], "pooled", None),
        ([0.9], "complete", None),
        ([0.21], "pooled", "s0 (at most 21.0 %)"),
        ([0.21, 0.1, 0.5], "sparse", "s0, s2 (at most 50.0 %)"),
    ],
)
def test_unjudged(shares: Sequence[float | None], judgments: str, highest: str | None) -> None:
    rows = [system(f"s{i}", 0.5, unjudged=share) for i, share in enumerate(shares)]
    result = warnings(collection(*rows, baseline="s0", judgments=judgments))
    assert ("unjudged" in result) is (highest is not None)
    assert highest is None or highest in result["unjudged"]


def test_measures_deeper_than_top_k() -> None:
    def cut(row: SystemResult, top_k: int | None) -> SystemResult:
        measures = dict.fromkeys((PRIMARY, "R@100", "AP"), row.measures[PRIMARY])
        config = {**(row.config or {}), "top_k": top_k}
        return row.model_copy(update={"config": config, "measures": measures})

    rows = [
        cut(BASE, None),
        cut(system("ten", 0.9, 0.8), 10),
        cut(system("hundred", 0.1, 0.1), 100),
    ]
    found = collection(*rows, measures=(PRIMARY, "R@100", "AP"))
    texts = [w.text for w in data_warnings(cases.report(found), found)]
    assert len(texts) == 2
    assert all(name in texts[0] for name in ("ten", "10 documents", "R@100 and AP"))
    assert all(name in texts[1] for name in ("hundred", "100 documents", ": AP"))
    assert "top_k" not in warnings(collection(BASE, cut(system("x", 0.9, 0.8), 10)))


UNJUDGED = UnjudgedResult(
    candidate_share=0.4, baseline_share=0.0, judged_only=-0.2, low=-0.3, high=-0.1, filled=-0.05
)


def test_answers_that_unjudged_documents_decide() -> None:
    rows = [BASE, system("high", 0.9, 0.8)]
    decided = compared("high", 0.4, "unjudged decide", unjudged=UNJUDGED)
    found = warnings(collection(*rows, comparisons=[decided]))
    assert list(found) == ["unjudged decide"]
    for text in ("+0.4000", "40.0 %", "-0.2000 [-0.3000, -0.1000]", "-0.0500"):
        assert text in found["unjudged decide"]
    assert "Judge these first: fusion-bench judge" in found["unjudged decide"]
    shown = compared("high", 0.4, "better", unjudged=UNJUDGED)
    assert warnings(collection(*rows, comparisons=[shown])) == {}


def test_sparse_judgments_say_why_nothing_corrects_for_unjudged_documents() -> None:
    row = BASE.model_copy(update={"unjudged_share": 0.5})
    assert SPARSE in warnings(collection(row, has_irrelevant_judgments=False))["unjudged"]
    assert SPARSE not in warnings(collection(row))["unjudged"]


@pytest.mark.parametrize(
    ("affected", "names"), [([1], None), ([2], "s0 "), ([0, 3, 2], "s1, s2 "), ([None], None)]
)
def test_ties(affected: Sequence[int | None], names: str | None) -> None:
    values = (0.5,) * 20  # 5 % are one query
    rows = [
        system(f"s{i}", *values, ties=None if count is None else tied(count))
        for i, count in enumerate(affected)
    ]
    result = warnings(collection(*rows, baseline="s0"))
    assert ("ties" in result) is (names is not None)
    if names is not None:
        most = max(count or 0 for count in affected)
        assert f"for {names}(at most {most} of 20)" in result["ties"]


@pytest.mark.parametrize("inside", [False, True])
def test_ties_inside_sources_have_a_warning_of_their_own(inside: bool) -> None:
    ties = SourceTieResult(
        affected_queries=2, minimum=0.1, maximum=0.2, expected=0.15, settlements=200
    )
    row = system("s0", *(0.5,) * 20)
    key = "source_ties" if inside else "ties"
    measures = {
        name: result.model_copy(update={key: ties}) for name, result in row.measures.items()
    }
    found = collection(row.model_copy(update={"measures": measures}), baseline="s0")
    assert [*warnings(found)] == ["source ties" if inside else "ties"]


@pytest.mark.parametrize(
    ("method", "missing", "normalize", "lowest", "is_named"),
    [
        ("weighted_score", "zero", {"method": "none"}, -1.0, True),
        ("weighted_score", "zero", "arctan", -1.0, True),
        ("comb_sum", None, None, -1.0, True),
        ("weighted_score", "zero", {"method": "none"}, 0.0, False),
        ("weighted_score", "zero", {"method": "min_max"}, -1.0, False),
        ("weighted_score", "skip", {"method": "none"}, -1.0, False),
        ("rrf", None, None, -1.0, False),
    ],
)
def test_absence_that_beats_a_score_below_0(
    method: str, missing: str | None, normalize: object, lowest: float, is_named: bool
) -> None:
    fusion = {"method": method, "missing": missing, "normalize": normalize}
    row = system("s0", 0.5, runs=("a", "b"))
    row = row.model_copy(update={"config": {"runs": ["a", "b"], "fusion": fusion}})
    lists = (run("a").model_copy(update={"lowest_score": lowest}), run("b"))
    found = collection(row, baseline="s0", runs=lists)
    assert ("missing zero" in warnings(found)) is is_named
