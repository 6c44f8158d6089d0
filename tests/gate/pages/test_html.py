"""The page of a verdict for a browser: its number, its checks, and names that stay text."""

from __future__ import annotations

from fusion_bench.gate.formats import gate_html
from fusion_bench.gate.page import build_gate_page
from fusion_bench.gate.result import GateVerdict
from tests.gate.pages.test_gate_page import NASTY, check, result
from tests.report.html.pages import page_data, parse_page


def html_of(verdict: GateVerdict) -> str:
    return gate_html(verdict, build_gate_page(verdict))


def test_the_number_counts_the_checks_that_passed() -> None:
    verdict = result(checks=(check(), check(measure="RR", status="fell")), exit_code=1)
    page = parse_page(html_of(verdict))
    assert "1 of 2 checks passed" in page.text
    assert verdict.headline in page.text


def test_each_check_with_numbers_is_drawn() -> None:
    failed = check(measure="AP", status="inconclusive", error="an empty slice", difference=None)
    fell = check(measure="RR", status="fell", difference=-0.1, t_bound=None)
    checks = page_data(html_of(result(checks=(check(), fell, failed))))["checks"]
    assert [(each["name"], each["tone"], each["status"]) for each in checks] == [
        ("mine / nDCG@10", "passed", "pass"),
        ("mine / RR (MRR)", "failed", "fell"),
    ]
    assert [(each["difference"], each["bound"], each["max_drop"]) for each in checks] == [
        (0.01, 0.001, 0.005),
        (-0.1, None, 0.005),
    ]


def test_a_refusal_has_its_reason_and_no_picture() -> None:
    html = html_of(result(refusals=("no baseline",)))
    assert "refused: no baseline" in parse_page(html).text
    assert page_data(html)["checks"] == []


def test_no_name_becomes_markup() -> None:
    page = parse_page(html_of(result(checks=(check(collection=NASTY),), baseline_reason=NASTY)))
    assert [tag for tag, _ in page.tags].count("b") == 0
    assert '<b>|`x`|</b>\\x1b[31m\\n& "q"' in page.text
