"""A decision for people, for JUnit and for a test's output: nothing lost, nothing let through."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from fusion_bench.cli._base import make_console
from fusion_bench.cli._gate_output import render
from fusion_bench.gate.junit import render_junit
from fusion_bench.gate.report import check_row, headings, losses, markdown, sentence, text
from fusion_bench.gate.result import (
    CheckResult,
    DocumentChange,
    GateVerdict,
    GoldenResult,
    GuardResult,
    QueryRegression,
)

NASTY = '<b>|`x`|</b>\x1b[31m\n& "q"'


def check(**changed: object) -> CheckResult:
    given = {
        "collection": "mine",
        "slice": None,
        "measure": "nDCG@10",
        "max_drop": 0.005,
        "status": "pass",
        "error": None,
        "queries": 100,
        "groups": 100,
        "changed": 40,
        "losses": 10,
        "baseline_mean": 0.5,
        "candidate_mean": 0.51,
        "difference": 0.01,
        "lower_bound": 0.001,
        "p": 0.9,
        "p_holm": 1.0,
        "min_detectable_drop": 0.03,
        "false_pass_rate": 0.049,
        "few_changed": False,
    }
    return CheckResult.model_validate(given | changed)


def guard(*, holds: bool, error: str | None = None) -> GuardResult:
    return GuardResult(
        collection="mine",
        measure="nDCG@10",
        max_loss=0.5,
        max_share=0.01,
        violations=3,
        share=0.03,
        error=error,
        holds=holds,
    )


def golden(*, holds: bool, place: int | None, error: str | None = None) -> GoldenResult:
    return GoldenResult(
        collection="mine", query=NASTY, document="d", top=3, rank=place, error=error, holds=holds
    )


def result(**changed: object) -> GateVerdict:
    given = {"experiment": NASTY, "baseline": "b.json", "system": NASTY, "exit_code": 0}
    return GateVerdict.model_validate(given | changed)


FULL = result(
    baseline_system="old",
    baseline_reason=NASTY,
    config_changes={NASTY: (None, ["a"])},
    checks=(
        check(),
        check(status="regressed", difference=-0.1, slice=NASTY),
        check(status="inconclusive", measure="RR"),
        check(
            status="inconclusive", error="an empty slice", measure="AP", p=None, lower_bound=None
        ),
        check(
            status="pass",
            few_changed=True,
            measure="P@5",
            min_detectable_drop=None,
            false_pass_rate=None,
        ),
    ),
    guards=(guard(holds=True), guard(holds=False), guard(holds=False, error="no query")),
    golden=(
        golden(holds=True, place=1),
        golden(holds=False, place=None),
        golden(holds=False, place=None, error="no such query"),
    ),
    regressions=(
        QueryRegression(
            collection="mine",
            query=NASTY,
            measure="nDCG@10",
            value_before=1.0,
            value_after=0.0,
            documents=(
                DocumentChange(document=NASTY, grade=2, rank_before=1, rank_after=None, cause="x"),
            ),
        ),
    ),
    exit_code=1,
)


def cases_of(decision: GateVerdict) -> dict[str, list[str]]:
    """What JUnit says, by kind of outcome."""
    [suite] = ET.fromstring(render_junit(decision))  # noqa: S314 - made by the code under test
    found: dict[str, list[str]] = {"passed": []}
    for case in suite:
        kinds = [child.tag for child in case if child.tag != "system-out"] or ["passed"]
        assert len(kinds) == 1
        found.setdefault(kinds[0], []).append(str(case.get("name")))
    counts = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    for kind, attribute in counts.items():
        assert suite.get(attribute) == str(len(found.get(kind, [])))
    return found


def test_junit_tells_what_failed_from_what_could_not_be_checked() -> None:
    found = cases_of(FULL)
    assert len(found["passed"]) == 4
    assert len(found["failure"]) == 4  # one regressed, one inconclusive, a guard, a golden query
    assert len(found["error"]) == 3
    warned = cases_of(FULL.model_copy(update={"on_inconclusive": "warn"}))
    assert warned["skipped"] == ["mine / RR"]
    assert len(warned["failure"]) == 3


def test_a_refusal_is_an_error() -> None:
    refused = result(refusals=("other split", "other ties"), exit_code=2)
    assert cases_of(refused) == {"passed": [], "error": ["comparable"]}
    assert "other split; other ties" in markdown(refused)
    assert text(refused).endswith("refused: other split; other ties")


def test_no_name_becomes_markup() -> None:
    page = markdown(FULL)
    assert "<b>" not in page
    assert "\x1b" not in page + text(FULL) + render_junit(FULL)
    table = [line for line in page.splitlines() if line.startswith("| ✅ mine")]
    assert len(table) == 2
    assert all(line.count("|") == len(headings()) + 1 for line in table)


def test_the_headline_counts_everything() -> None:
    assert FULL.headline == (
        "regressed: 5 checks (2 pass, 1 regressed, 2 inconclusive, 2 guards broken, "
        "3 could not be made)"
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (check(error="NaN", status="inconclusive"), "could not be checked: NaN"),
        (check(few_changed=True), "fewer than 10 changed, so this holds on these queries only"),
        (
            check(status="inconclusive"),
            "too noisy to tell: only a drop of 0.0300 would have been called regressed with "
            "power .8; 100 queries, and about 3,600 are needed",
        ),
        (check(status="regressed"), "40 of 100 queries changed, 10 worse)"),
    ],
)
def test_a_check_in_words(given: CheckResult, words: str) -> None:
    assert sentence(given).endswith(words)


def test_a_pass_that_guards_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "! mine / nDCG@10: minimum detectable drop (80 % power) 0.0300, larger than max_drop 0.005"
    )
    render(FULL, make_console())
    assert words in capsys.readouterr().out
    assert words in text(FULL)
    assert markdown(FULL).count("minimum detectable drop") == 1
    sure = result(checks=(check(min_detectable_drop=0.0074), check(status="regressed")))
    assert "minimum detectable" not in text(sure) + markdown(sure)


def test_who_lost_names_the_rank_below_the_cut_and_folds_what_did_not_move() -> None:
    def document(name: str, before: int | None, after: int | None, **cut: int) -> DocumentChange:
        return DocumentChange(
            document=name, grade=3, rank_before=before, rank_after=after, cause="why", **cut
        )

    lost = QueryRegression(
        collection="mine",
        query="q",
        measure="nDCG@10",
        value_before=1.0,
        value_after=0.0,
        top_k=(None, 10),
        documents=(
            document("d", 1, None, cut_rank_after=27),
            document("e", 2, None),
            document("f", 3, 3),
            document("g", None, None, cut_rank_after=30),
        ),
    )
    assert list(losses(lost)) == [
        "d (grade 3) 1 → 27 (below top_k 10): why",
        "e (grade 3) 2 → –: why",
        "2 more relevant documents: rank unchanged, or in neither list",
    ]


def test_a_row_has_a_cell_for_every_heading() -> None:
    row = check_row(check(few_changed=True, min_detectable_drop=None, false_pass_rate=None))
    assert len(row) == len(headings())
    assert row[1] == "pass (on these queries only)"
    assert row[-2:] == ("n/a", "n/a")


def test_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    render(FULL, make_console())
    out = capsys.readouterr().out
    assert "mine / RR" in out
    assert "\x1b" not in out
    assert "lost: mine, query" in out
    assert "at most 1 % may: broken" in out
    assert "it must be in the top 3: holds" in out
    assert out.rstrip().endswith("3 could not be made)")
