from __future__ import annotations

import pytest

from fusion_bench.report.html.render import first_sentence, render_html
from fusion_bench.report.page import Finding, Page, Section


@pytest.mark.parametrize(
    ("text", "first", "rest"),
    [
        ("No end", "No end", ""),
        (
            "nDCG@10 0.5 vs. 0.6 falls. It may rise. Wait.",
            "nDCG@10 0.5 vs. 0.6 falls.",
            "It may rise. Wait.",
        ),
        ("", "", ""),
    ],
)
def test_a_sentence_ends_before_a_capital_letter(text: str, first: str, rest: str) -> None:
    assert first_sentence(text) == (first, rest)


def render(*findings: Finding) -> str:
    return render_html(Page("T", (Section("S", findings=findings),)))


def test_a_warning_is_one_line_and_three_of_them_are_seen() -> None:
    texts = [f"Warning {i}. More of {i}." for i in range(5)]
    html = render(*(Finding(text, "warning") for text in texts))
    assert "<h3>5 warnings</h3>" in html
    assert "<summary>Warning 0.</summary>More of 0." in html
    before, after = html.split("<summary>2 more warnings</summary>")
    assert "Warning 2." in before
    assert "Warning 3." not in before
    assert "Warning 4." in after


@pytest.mark.parametrize(
    ("tones", "title"),
    [
        (["plain"], "1 lint note"),
        (["warning", "warning"], "2 lint warnings"),
        (["plain", "warning"], "1 lint warning and 1 note"),
    ],
)
def test_lint_is_one_line_with_its_rules(tones: list[str], title: str) -> None:
    html = render(*(Finding(tone, tone, f"lint {tone}") for tone in tones))  # type: ignore[arg-type]
    rules = ", ".join(sorted(tones, reverse=True))
    assert f"<b>{title}</b> about the configuration: {rules}</summary>" in html
    assert ('class="warnings lint"' in html) == ("warning" in tones)
    assert '<ul class="findings">' not in html
