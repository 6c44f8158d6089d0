"""The comment on a pull request: what decides comes first, and no name becomes markup."""

from __future__ import annotations

import re

import pytest

from fusion_bench.gate.formats import MAX_BARS, render_comment
from tests.gate.pages.test_gate_page import FULL, NASTY, check, result
from tests.texts import names_in_order


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
    assert lines[4].endswith("RR (MRR): regressed")
    [row] = [line for line in lines if "90 worse" in line]
    assert names_in_order(row, "0.5000 → 0.5100", "-0.1000", "-0.0050", "50 better", "of 400")
    names = [line.split("  ")[0] for line in code_block(text)[:-1]]
    assert names == ["mine / RR (MRR)", "mine / nDCG@10"]


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
