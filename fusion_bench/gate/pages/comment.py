"""A verdict as a comment on a pull request: what happened, three numbers, bars, then the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fusion_bench.gate.pages.gate_page import build_gate_page
from fusion_bench.gate.records.check_result import CheckResult
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.verdict import ACCEPTED
from fusion_bench.report.page import Column, Row, Table
from fusion_bench.report.text.bars import BarRow, draw_bars
from fusion_bench.report.text.markdown import MARKS, escape_markdown, format_table
from fusion_bench.report.text.summary import render_summary
from fusion_bench.util.formatting import format_number, pluralize

#: So many checks have a bar.
MAX_BARS = 12
LEGEND = (
    "Bars: candidate − reference. The line ends at the one-sided 95 % t bound. ┊ is the largest "
    "drop that the policy allows."
)
COLUMNS = (Column("mean"), Column("difference"), Column("queries"))


def render_comment(verdict: GateVerdict) -> str:
    """Markdown: the verdict, three numbers, the differences as bars, and the summary, folded.

    The numbers are those of the first check that did not pass, else of the first.
    """
    page = build_gate_page(verdict)
    mark = "" if page.headline is None else MARKS.get(page.headline.tone, "")
    lines = [
        f"# {mark}{escape_markdown(page.title)}",
        "",
        f"**{escape_markdown(verdict.headline)}**",
    ]
    known = [check for check in verdict.checks if check.difference is not None]
    if known:
        known.sort(key=lambda check: check.status in ACCEPTED)
        lines += ["", *_number_lines(known[0]), "", *_bar_lines(known)]
    summary = render_summary(replace(page, headline=None)).partition("\n")[2].strip()
    if summary:
        title = "Checks, findings and queries" if known else "Reasons"
        lines += ["", "<details>", f"<summary>{title}</summary>", "", summary, "", "</details>"]
    return "\n".join(lines) + "\n"


def _number_lines(check: CheckResult) -> Iterator[str]:
    """The name of a check, and its three numbers."""
    before, after = (format_number(mean) for mean in (check.baseline_mean, check.candidate_mean))
    difference = format_number(check.difference, signed=True)
    wins = check.changed - check.losses
    numbers = Row(
        (
            f"{before} → {after}",
            f"{difference}, allowed {format_number(-check.max_drop, signed=True)}",
            f"{wins:,} better, {check.losses:,} worse of {check.queries:,}",
        )
    )
    yield f"{escape_markdown(check.display_name)}: {check.stated_status}"
    yield ""
    yield from format_table(Table("", COLUMNS, (numbers,)))


def _bar_lines(checks: Sequence[CheckResult]) -> Iterator[str]:
    """A block of code, whose fence is longer than any run of backticks in it."""
    rows = [
        BarRow(check.display_name, check.difference, check.t_bound, -check.max_drop)
        for check in checks[:MAX_BARS]
        if check.difference is not None
    ]
    bars = draw_bars(rows)
    longest = max(map(len, re.findall(r"`+", "\n".join(bars))), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}text", *bars, fence, "", LEGEND)
    if len(checks) > MAX_BARS:
        yield f"{pluralize(len(checks) - MAX_BARS, 'more check')} without a bar."
