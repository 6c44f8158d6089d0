"""A verdict in other formats: HTML, JUnit XML, a pull request's comment, the page of an update.

In a comment each difference has a line: its bar begins at 0, a thin line goes on to its bound, and
a mark stands at the largest drop that is allowed::

    attack / nDCG@10  -0.0173  ├─██████┊███████│
    attack / RR@10    +0.0020          ┊      ├│██
                               -0.019          0          +0.019
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from xml.etree import ElementTree as ET

from rich.cells import cell_len, set_cell_size

from fusion_bench.gate.baseline import Baseline, CheckUpdate, QueryLoss
from fusion_bench.gate.page import (
    build_gate_page,
    changes_table,
    check_tone,
    describe_check,
    describe_query_check,
)
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.verdict import ACCEPTED, CheckResult, CheckStatus, GuardResult
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.answer_texts import DIFFERENCE
from fusion_bench.report.html.render import render_html
from fusion_bench.report.markdown import MARKS, escape_markdown, format_table, render_summary
from fusion_bench.report.page import Column, Finding, Page, Section, Table, Tone, make_table
from fusion_bench.util.formatting import escape_control_chars, format_number, pluralize, quote_text

#: Characters on each side of 0.
BAR_HALF_WIDTH = 16
#: Longer names are cut.
MAX_BAR_NAME_WIDTH = 40
ZERO, BAR, LIMIT, LINE, BOUND = "│", "█", "┊", "─", "├"


#: So many checks have a bar.
MAX_BARS = 12
LEGEND = (
    "Bars: candidate − reference. The line ends at the one-sided 95 % lower end. ┊ is the largest "
    "drop that the policy allows."
)


def _format_means(check: CheckResult) -> str:
    return f"{format_number(check.baseline_mean)} → {format_number(check.candidate_mean)}"


def _format_allowed(check: CheckResult) -> str:
    allowed = format_number(-check.max_drop, signed=True)
    return f"{format_number(check.difference, signed=True)}, allowed {allowed}"


def _count_better(check: CheckResult) -> str:
    wins = check.changed - check.losses
    return f"{wins:,} better, {check.losses:,} worse of {check.queries:,}"


COMMENT_COLUMNS: tuple[Column[CheckResult], ...] = (
    Column("mean", _format_means),
    Column("difference", _format_allowed),
    Column("queries", _count_better),
)


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
        first = f"{escape_markdown(known[0].display_name)}: {known[0].stated_status}"
        lines += ["", first, "", *format_table(make_table("", COMMENT_COLUMNS, known[:1]))]
        bars = draw_bars(
            [
                BarRow(check.display_name, check.difference, check.lower_end, -check.max_drop)
                for check in known[:MAX_BARS]
                if check.difference is not None
            ]
        )
        # The fence is longer than any run of backticks in the names.
        longest = max(map(len, re.findall(r"`+", "\n".join(bars))), default=0)
        fence = "`" * max(3, longest + 1)
        lines += ["", f"{fence}text", *bars, fence, "", LEGEND]
        if len(known) > MAX_BARS:
            lines.append(f"{pluralize(len(known) - MAX_BARS, 'more check')} without a bar.")
    summary = render_summary(replace(page, headline=None)).partition("\n")[2].strip()
    if summary:
        title = "Checks, findings and queries" if known else "Reasons"
        lines += ["", "<details>", f"<summary>{title}</summary>", "", summary, "", "</details>"]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class BarRow:
    """A difference and what it is held to.

    Attributes:
        name: What was measured.
        difference: Candidate − baseline.
        bound: Lower bound of the difference; None = not known.
        limit: The difference that is still allowed; 0 or less.
    """

    name: str
    difference: float
    bound: float | None
    limit: float


def draw_bars(rows: Sequence[BarRow]) -> list[str]:
    """One line for each row, all on one scale, which the last line gives.

    Args:
        rows: At least one; every number finite.
    """
    numbers = [
        abs(number) for row in rows for number in (row.difference, row.bound or 0.0, row.limit)
    ]
    scale = max(numbers) or 1.0
    names = [_cut_name(row.name) for row in rows]
    name_width = max(map(cell_len, names))
    values = [format_number(row.difference, signed=True) for row in rows]
    width = max(map(len, values))
    lines = [
        f"{set_cell_size(name, name_width)}  {value:>{width}}  {_draw_bar(row, scale)}".rstrip()
        for name, value, row in zip(names, values, rows, strict=True)
    ]
    ends = f"-{scale:.2g}".ljust(BAR_HALF_WIDTH) + "0" + f"+{scale:.2g}".rjust(BAR_HALF_WIDTH)
    return [*lines, f"{'':{name_width}}  {'':{width}}  {ends}"]


def _draw_bar(row: BarRow, scale: float) -> str:
    """The bar of one difference, 0 in the middle."""
    zero = BAR_HALF_WIDTH
    end = zero + round(row.difference / scale * BAR_HALF_WIDTH)
    cells = [" "] * (2 * BAR_HALF_WIDTH + 1)
    if row.bound is not None:
        bound = zero + round(row.bound / scale * BAR_HALF_WIDTH)
        cells[bound : end + 1] = [BOUND, *LINE * (end - bound)][: end + 1 - bound]
    first, last = min(zero, end), max(zero, end)
    cells[first : last + 1] = [BAR] * (last + 1 - first)
    cells[zero] = ZERO
    if row.limit < 0:
        cells[min(zero - 1, zero + round(row.limit / scale * BAR_HALF_WIDTH))] = LIMIT
    return "".join(cells)


def _cut_name(name: str) -> str:
    shown = escape_control_chars(name)
    if cell_len(shown) <= MAX_BAR_NAME_WIDTH:
        return shown
    return f"{set_cell_size(shown, MAX_BAR_NAME_WIDTH - 1)}…"


HELP = (
    "Each mark is the mean of candidate − reference. The line ends at the one-sided 95 % lower "
    "end.",
    "The orange mark is the largest drop that the policy allows. A check passes where the whole "
    "line lies right of it; it regresses if the mean lies left of it, and a drop is shown.",
    "Where the line crosses the mark, the queries cannot decide: the status is inconclusive.",
)


def gate_html(verdict: GateVerdict, page: Page) -> str:
    """Render the page of a verdict with the checks that have a difference, as the page draws them.

    ``{"kind": "gate", "checks": [{"name", "status", "tone": "passed|failed|inconclusive",
    "difference", "bound": lower end or null, "max_drop"}], "help": [paragraphs]}``

    Args:
        verdict: The verdict whose checks are drawn.
        page: The texts and tables.
    """
    checks = [
        {
            "name": escape_control_chars(check.display_name),
            "status": check.stated_status,
            "tone": check_tone(check),
            "difference": check.difference,
            "bound": check.lower_end,
            "max_drop": check.max_drop,
        }
        for check in verdict.checks
        if check.difference is not None
    ]
    return render_html(page, {"kind": "gate", "checks": checks, "help": list(HELP)})


def render_junit(verdict: GateVerdict) -> str:
    """JUnit XML: one test case a check, guard and golden query.

    A status that blocks is a failure; an error is an error. A warning is skipped with its reason.
    """
    title = escape_control_chars(f"fusion-bench gate {verdict.experiment}")
    suite = ET.Element("testsuite", name=title)
    if verdict.refusals:
        _add_case(suite, "baseline", "comparable", "; ".join(verdict.refusals), "error")
    if verdict.unreproduced:
        kind = None if verdict.is_reproduced else "failure"
        _add_case(suite, "baseline", "reproduced", ", ".join(verdict.unreproduced), kind)
    for check in verdict.checks:
        kind = "error" if check.error is not None else _find_kind(check.status, verdict)
        _add_case(suite, check.collection, check.name, describe_check(check, verdict), kind)
    for each in verdict.false_answers:
        kind = _find_kind(each.status, verdict)
        _add_case(suite, each.collection, each.name, each.description, kind)
    for item in verdict.query_checks:
        name = (
            f"guard {item.measure} −{item.max_loss:g}"
            if isinstance(item, GuardResult)
            else f"golden {item.query} {item.document}"
        )
        kind = "failure" if item.is_violated else None if item.error is None else "error"
        _add_case(suite, item.collection, name, describe_query_check(item), kind)
    for kind, key in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(key, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite)))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _find_kind(status: CheckStatus, verdict: GateVerdict) -> str | None:
    if status in verdict.blocking:
        return "failure"
    return None if status in ACCEPTED else "skipped"


def _add_case(suite: ET.Element, group: str, name: str, text: str, kind: str | None) -> None:
    """Add a test case; ``kind`` says how it failed, None that it passed."""
    group, name, text = map(escape_control_chars, (group, name, text))
    case = ET.SubElement(suite, "testcase", classname=group, name=name)
    if kind is not None:
        ET.SubElement(case, kind, message=text)
    ET.SubElement(case, "system-out").text = text


UPDATE_COLUMNS: tuple[Column[CheckUpdate], ...] = (
    Column("check", lambda check: check.display_name, is_text=True),
    Column("verdict", lambda c: c.status if c.error is None else "error", is_text=True),
    Column("old", lambda check: format_number(check.old_mean)),
    Column("new", lambda check: format_number(check.new_mean)),
    DIFFERENCE,
    Column("changed", lambda check: f"{check.changed} of {check.queries}", is_optional=True),
    Column("max_drop", lambda check: f"{check.max_drop:g}", is_optional=True),
)


def build_update_page(baseline: Baseline) -> Page:
    """The page of a baseline's newest update, which has one before it."""
    previous, update = baseline.history[-2:]
    parts: list[Table] = []
    if update.config_changes:
        parts.append(changes_table("configuration", update.config_changes))
    if update.checks:
        title = "Old and new values"
        parts.append(make_table(title, UPDATE_COLUMNS, update.checks, tone=check_tone))
    else:  # the queries are not the same: their means alone can be shown
        pairs = [(name, measure) for name, means in update.means.items() for measure in means]
        columns: list[Column[tuple[str, str]]] = [
            Column("measure", lambda pair: f"{pair[0]} / {display_measure(pair[1])}", is_text=True),
            Column("old", lambda p: format_number(previous.means.get(p[0], {}).get(p[1]))),
            Column("new", lambda pair: format_number(update.means[pair[0]][pair[1]])),
        ]
        parts.append(make_table("Means", columns, pairs))
    text = "The new values are the anchor from now on."
    findings = [Finding(text, key="anchor")] if update.is_anchor else []
    findings += [
        Finding(f"not compared: {reason}", "warning", key="incomparable")
        for reason in update.incomparable
    ]
    for policy_change in update.policy_changes:
        tone: Tone = "warning" if policy_change.needs_update else "plain"
        description = f"policy: {policy_change.description} ({policy_change.effect})"
        findings.append(Finding(description, tone, key="policy"))
    findings += [Finding(change.description, key="lists") for change in update.list_changes]
    sections = [Section(findings=tuple(findings), parts=tuple(parts))]
    if update.losses:
        losses = tuple(Finding(_describe_loss(loss)) for loss in update.losses)
        sections.append(Section("Queries that lost most", findings=losses))
    title = f"What update {len(baseline.history)} changed"
    headline = Finding("The new values cannot be compared with the old ones.", "inconclusive")
    if update.verdict:
        tones = {check_tone(check) for check in update.checks}
        order: tuple[Tone, ...] = ("failed", "inconclusive", "passed")
        text = f"Verdict of the gate on this update: {update.verdict}"
        headline = Finding(text, next((tone for tone in order if tone in tones), "inconclusive"))
    return Page(title, tuple(sections), headline=headline)


def _describe_loss(loss: QueryLoss) -> str:
    name = quote_text(f"query {loss.query}", loss.text)
    old, new = format_number(loss.old_value), format_number(loss.new_value)
    return f"{loss.collection}, {name}: {display_measure(loss.measure)} {old} → {new}"
