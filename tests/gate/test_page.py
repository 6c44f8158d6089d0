"""The page of a verdict, for the terminal, a browser, a pull request and JUnit."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fusion_bench.gate.baseline import DocumentChange, ListChange, QueryRegression, SealedDrop
from fusion_bench.gate.formats import MAX_BARS, gate_html, render_comment, render_junit
from fusion_bench.gate.page import FEW_CHANGES, build_gate_page, describe_check, format_text
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.verdict import CheckResult, GoldenResult, GuardResult
from fusion_bench.report.markdown import render_page
from fusion_bench.stats.unjudged import UnjudgedResult
from tests.report.html.pages import page_data, parse_page
from tests.texts import names_in_order

GOLDEN = Path(__file__).parent / "gate.golden.md"
BLOCKING = ("regressed", "unjudged decide", "inconclusive")
NASTY = '<b>|`x`|</b>\x1b[31m\n& "q"'


def check(**changed: object) -> CheckResult:
    given = {
        "collection": "mine",
        "slice": None,
        "measure": "nDCG@10",
        "max_drop": 0.005,
        "status": "pass",
        "error": None,
        "queries": 400,
        "groups": 400,
        "changed": 140,
        "losses": 10,
        "baseline_mean": 0.5,
        "candidate_mean": 0.51,
        "difference": 0.01,
        "standard_error": 0.004,
        "lower_end": 0.001,
        "upper_end": 0.019,
        "p": 1.0,
        "min_detectable_drop": 0.03,
        "pass_rate": 0.4,
        "regressed_rate": 0.01,
        "false_pass_rate": 0.049,
        "unseen_loss": 0.012,
        "needed": {"queries": 15000, "low": 12000, "high": 19000, "at_least": False},
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
    given["blocking"] = BLOCKING
    return GateVerdict.model_validate(given | changed)


def list_change(change: str, before: object, after: object) -> ListChange:
    return ListChange(collection=NASTY, part="runs/a", change=change, before=before, after=after)


FULL = result(
    baseline_experiment="before",
    baseline_system="old",
    baseline_reason=NASTY,
    config_changes={NASTY: (None, ["a"])},
    list_changes=(
        list_change("contents", "1" * 64, "2" * 64),
        list_change("missing", "1" * 64, None),
        list_change("roles", [], ["keyword"]),
    ),
    checks=(
        check(),
        check(status="regressed", difference=-0.1, slice=NASTY),
        check(status="inconclusive", measure="RR"),
        check(status="inconclusive", error="an empty slice", measure="AP", p=None, lower_end=None),
        check(
            changed=9,
            has_few_changes=True,
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
            text=NASTY,
            measure="nDCG@10",
            value_before=1.0,
            value_after=0.0,
            documents=(
                DocumentChange(
                    document=NASTY, title=NASTY, grade=2, rank_before=1, rank_after=None, cause="x"
                ),
            ),
        ),
    ),
    exit_code=1,
)


def cases_of(verdict: GateVerdict) -> dict[str, list[str]]:
    [suite] = ET.fromstring(render_junit(verdict))  # noqa: S314 - made by the code under test
    names: dict[str, list[str]] = {"passed": []}
    for case in suite:
        kinds = [child.tag for child in case if child.tag != "system-out"] or ["passed"]
        assert len(kinds) == 1
        names.setdefault(kinds[0], []).append(str(case.get("name")))
    counts = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    for kind, attribute in counts.items():
        assert suite.get(attribute) == str(len(names.get(kind, [])))
    return names


def test_junit_separates_failures_from_errors() -> None:
    names = cases_of(FULL)
    assert len(names["passed"]) == 4
    assert len(names["failure"]) == 4  # one regressed, one inconclusive, a guard, a golden query
    assert len(names["error"]) == 3
    warned = cases_of(FULL.model_copy(update={"blocking": ("regressed",)}))
    assert warned["skipped"] == ["mine / RR"]
    assert len(warned["failure"]) == 3


def test_a_refusal_is_an_error() -> None:
    refused = result(refusals=("other split", "other ties"), exit_code=2)
    assert cases_of(refused) == {"passed": [], "error": ["comparable"]}
    page = build_gate_page(refused)
    assert page.headline is not None
    assert page.headline.tone == "failed"
    for text in (page.headline.text, format_text(refused)):
        assert names_in_order(text, "refused: ", *refused.refusals)


@pytest.mark.parametrize(("code", "tone"), [(0, "passed"), (1, "failed"), (3, "inconclusive")])
def test_the_headline_has_the_tone_of_the_exit_code(code: int, tone: str) -> None:
    headline = build_gate_page(FULL.model_copy(update={"exit_code": code})).headline
    assert headline is not None
    assert headline.tone == tone


def test_no_name_becomes_markup() -> None:
    text = render_page(build_gate_page(FULL))
    assert "<b>" not in text
    assert "\x1b" not in text + format_text(FULL) + render_junit(FULL)
    rows = [line for line in text.splitlines() if line.startswith("| ✅ mine")]
    assert len(rows) == 2


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (check(min_detectable_drop=0.0074), None),
        (check(min_detectable_drop=None), None),
        (check(min_detectable_drop=0.0074, has_few_changes=True), "pass"),
        (check(min_detectable_drop=0.0074, groups=299), "unseen losses"),
        (check(min_detectable_drop=0.03), "power"),
        (check(status="regressed"), "regressed"),
    ],
)
def test_the_power_warning_is_for_checks_that_pass(given: CheckResult, key: str | None) -> None:
    sections = build_gate_page(result(checks=(given,))).sections
    findings = [finding.key for section in sections for finding in section.findings]
    assert findings == ([] if key is None else [key])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (check(error="NaN", status="inconclusive"), "not checked: NaN"),
        (check(status="inconclusive"), "if nothing is lost (80 % power)"),
        (check(status="regressed"), "140 of 400 queries changed, 10 for the worse"),
    ],
)
def test_a_check_in_words(given: CheckResult, words: str) -> None:
    assert describe_check(given).endswith(words)


def test_a_check_that_blocks_begins_with_its_reason() -> None:
    unjudged = UnjudgedResult(candidate_share=0.3, baseline_share=0.0, filled=-0.2)
    given = {
        "it drops by 0.1000, allowed 0.005. ": check(status="regressed", difference=-0.1),
        "a drop of more than 0.005 is neither shown nor excluded. ": check(status="inconclusive"),
        f"{FEW_CHANGES}. ": check(status="inconclusive", has_few_changes=True),
        "with estimated grades the difference is -0.2000. ": check(
            status="unjudged decide", difference=0.1, unjudged=unjudged
        ),
        "30.0 % of its top 10 is unjudged. ": check(
            status="unjudged decide", unjudged=unjudged.model_copy(update={"filled": None})
        ),
    }
    for reason, each in given.items():
        assert describe_check(each).startswith(f"{reason}Baseline 0.5000"), reason


def test_what_became_of_old_keys_and_of_auto_is_said() -> None:
    drop = SealedDrop(
        collection="mine", slice=None, measure="nDCG@10", max_drop=0.012, reason="2.5 × 0.0047"
    )
    page = build_gate_page(
        result(checks=(check(),), policy_notes=("gate.fell has no",), max_drops=(drop,))
    )
    [section] = [each for each in page.sections if each.title == "Findings"]
    assert ("gate.fell has no", "warning") in [(f.text, f.tone) for f in section.findings]
    [table] = [table for each in page.sections for table in each.tables]
    assert names_in_order(table.notes[-1], "auto", "mine / nDCG@10 0.012", "2.5 × 0.0047")
    assert any("on these queries" in note for note in table.notes)


def describe_documents(
    *changes: tuple[int | None, int | None, int | None], has_old_ranks: bool = True
) -> tuple[str, ...]:
    """What the page says of the documents d, e, f, … of one query's loss.

    Args:
        changes: The rank before and after, and the rank that ``top_k`` cut off.
        has_old_ranks: Whether the baseline's lists are at hand.
    """
    documents = tuple(
        DocumentChange(
            document=name,
            grade=3,
            rank_before=before,
            rank_after=after,
            cut_rank_after=cut,
            cause="why",
        )
        for name, (before, after, cut) in zip("defghi", changes, strict=False)
    )
    lost = QueryRegression(
        collection="mine",
        query="q",
        measure="nDCG@10",
        value_before=1.0,
        value_after=0.0,
        top_k=(None, 10),
        documents=documents,
        has_old_ranks=has_old_ranks,
    )
    [finding] = build_gate_page(result(regressions=(lost,))).sections[-1].findings
    return finding.details


def test_documents_of_a_loss_name_the_rank_below_the_cut() -> None:
    details = describe_documents((1, None, 27), (2, None, None), (3, 3, None), (None, None, 30))
    assert len(details) == 3
    assert names_in_order(details[0], "d (grade 3) 1 → 27", "top_k 10): why")
    assert details[1] == "e (grade 3) 2 → –: why"
    assert details[2].startswith("2 more relevant documents")


def test_a_loss_without_old_ranks_says_where_its_documents_are() -> None:
    changes = ((None, 2, None), (None, None, 27), (None, None, None))
    ranked, cut, absent = describe_documents(*changes, has_old_ranks=False)
    assert names_in_order(ranked, "d (grade 3)", "rank 2")
    assert names_in_order(cut, "e (grade 3)", "rank 27", "top_k 10)")
    assert names_in_order(absent, "f (grade 3)", "not in")


def test_the_page_is_the_golden_page() -> None:
    assert render_page(build_gate_page(FULL)) == GOLDEN.read_text(encoding="utf-8")


def code_block(text: str) -> list[str]:
    match = re.search(r"^(`{3,})text\n(.*?)\n\1$", text, re.DOTALL | re.MULTILINE)
    assert match is not None
    return match[2].splitlines()


def test_the_numbers_are_of_the_check_that_decides() -> None:
    regressed = check(status="regressed", measure="RR", difference=-0.1, losses=90)
    verdict = result(checks=(check(), regressed), exit_code=1)
    text = render_comment(verdict)
    lines = text.splitlines()
    assert lines[0].startswith("# ❌ fusion-bench gate: ")
    assert lines[2] == f"**{verdict.headline}**"
    assert lines[4].endswith("MRR: regressed")
    [row] = [line for line in lines if "90 worse" in line]
    assert names_in_order(row, "0.5000 → 0.5100", "-0.1000", "-0.0050", "50 better", "of 400")
    names = [line.split("  ")[0] for line in code_block(text)[:-1]]
    assert names == ["mine / MRR", "mine / nDCG@10"]


def test_where_all_passed_the_first_check_has_the_numbers() -> None:
    text = render_comment(result(checks=(check(), check(measure="RR", difference=-0.001))))
    assert text.splitlines()[0].startswith("# ✅ ")
    assert "mine / nDCG@10: pass\n" in text


def test_a_check_without_numbers_has_no_bar() -> None:
    failed = check(status="inconclusive", error="an empty slice", difference=None)
    text = render_comment(result(checks=(failed, check(measure="RR")), exit_code=2))
    assert len(code_block(text)) == 2
    assert "an empty slice" in text


def test_a_refusal_has_its_reason_and_no_numbers() -> None:
    text = render_comment(result(refusals=("no baseline <b>",), exit_code=2))
    assert r"**refused: no baseline \<b\>**" in text
    assert "```" not in text


def test_many_checks_are_counted() -> None:
    checks = tuple(check(measure=f"P@{n}") for n in range(1, MAX_BARS + 4))
    text = render_comment(result(checks=checks))
    assert len(code_block(text)) == MAX_BARS + 1
    assert "3 more checks" in text


@pytest.mark.parametrize("name", [NASTY, "```\n# x", "a````b", "</details><script>"])
def test_names_stay_text(name: str) -> None:
    text = render_comment(FULL.model_copy(update={"checks": (check(slice=name),)}))
    fence = re.search(r"^(`+)text$", text, re.MULTILINE)
    assert fence is not None
    code = "\n".join(code_block(text))
    assert fence[1] not in code
    outside = text.replace(code, "")
    assert "<script" not in outside.replace(r"\<script", "")
    assert outside.count("</details>") == outside.count("<details>")
    assert not set(text) & {"\x1b"}


def html_of(verdict: GateVerdict) -> str:
    return gate_html(verdict, build_gate_page(verdict))


def test_the_title_is_the_verdict() -> None:
    verdict = result(checks=(check(), check(measure="RR", status="regressed")), exit_code=1)
    page = parse_page(html_of(verdict))
    assert page.texts["title"][0].startswith("Regressed: 2 checks")
    assert verdict.headline.capitalize() in page.text


def test_each_check_with_numbers_is_drawn() -> None:
    failed = check(measure="AP", status="inconclusive", error="an empty slice", difference=None)
    fell = check(measure="RR", status="regressed", difference=-0.1, lower_end=None)
    checks = page_data(html_of(result(checks=(check(), fell, failed))))["checks"]
    assert [(each["name"], each["tone"], each["status"]) for each in checks] == [
        ("mine / nDCG@10", "passed", "pass"),
        ("mine / MRR", "failed", "regressed"),
    ]
    assert [(each["difference"], each["bound"], each["max_drop"]) for each in checks] == [
        (0.01, 0.001, 0.005),
        (-0.1, None, 0.005),
    ]


def test_a_refusal_has_no_picture() -> None:
    html = html_of(result(refusals=("no baseline",)))
    assert "Refused: no baseline" in parse_page(html).text
    assert page_data(html)["checks"] == []
