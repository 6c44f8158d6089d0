"""A self-test as Markdown, JSON and a picture."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from fusion_bench.gate.self_test.error_rates import ErrorRate, SelfTestResult
from fusion_bench.report.markdown import escape_markdown as escape
from fusion_bench.util.formatting import format_number

__all__ = ["HEADINGS", "headline", "page", "picture", "plain", "rows"]

HEADINGS = ("what", "check", "planted drop", "happened", "share", "interval", "promised", "holds")


def headline(found: SelfTestResult) -> str:
    """The outcome in one line."""
    if not found.error_rates:
        return "nothing could be tried: " + "; ".join(found.skipped.values())
    wrong = sum(not finding.agrees for finding in found.error_rates)
    promises = f"{len(found.error_rates)} promises, {found.error_rates[0].runs:,} runs each"
    return f"{promises}: {f'{wrong} broken' if wrong else 'all hold'}"


def rows(found: SelfTestResult) -> list[tuple[str, ...]]:
    """Cells of every finding, in the order of the headings."""
    return [_row(finding) for finding in found.error_rates]


def _row(finding: ErrorRate) -> tuple[str, ...]:
    promised = f"{100 * finding.stated:.1f} %"
    return (
        finding.kind,
        finding.check or "all together",
        "none" if finding.drop is None else format_number(finding.drop),
        f"{finding.count} of {finding.runs}",
        f"{100 * finding.rate:.2f} %",
        f"[{100 * finding.low:.2f}, {100 * finding.high:.2f}] %",
        f"at most {promised}" if finding.at_most else promised,
        "yes" if finding.agrees else "NO",
    )


def page(found: SelfTestResult, title: str, systems: tuple[str, str]) -> str:
    """The table for people.

    Args:
        found: The self-test.
        title: Of the page.
        systems: The two that gave the differences.
    """
    lines = [
        f"# {escape(title)}",
        "",
        f"**{escape(headline(found))}.** Differences of {escape(systems[1])} to "
        f"{escape(systems[0])}.",
        "",
        "Clopper–Pearson intervals, 95 % for all rows together. False alarm: any check is called "
        "regressed in an A/A run (labels swapped with probability ½, by group where there are "
        "groups). Test alone: one check's randomisation test rejects, without Holm and tolerance. "
        "Detection and false pass: groups drawn with replacement, mean moved to the planted drop; "
        "what is promised is what the gate prints.",
        "",
        f"| {' | '.join(HEADINGS)} |",
        f"|{'|'.join([':--', ':--', *['--:'] * 5, ':--'])}|",
        *(f"| {' | '.join(escape(cell) for cell in row)} |" for row in rows(found)),
        "",
        *(f"- not tried: {escape(name)}: {escape(why)}" for name, why in found.skipped.items()),
    ]
    return "\n".join(lines).rstrip() + "\n"


def plain(found: SelfTestResult, systems: tuple[str, str]) -> str:
    """JSON for programs: every finding and the printed curves."""
    data = {
        "format": "fusion-bench-self-test",
        "format_version": 2,
        "systems": systems,
        "agrees": found.agrees,
        "error_rates": [
            {**asdict(finding), "rate": finding.rate, "agrees": finding.agrees}
            for finding in found.error_rates
        ],
        "power_curves": {
            name: {"drop": drops.tolist(), "power": power.tolist()}
            for name, (drops, power) in found.power_curves.items()
        },
        "skipped": found.skipped,
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"


def picture(found: SelfTestResult, max_drops: Mapping[str, float]) -> bytes:
    """The power curves as PNG; imports matplotlib."""
    from fusion_bench.report.plots import png
    from fusion_bench.report.power_plot import power_curves

    points = {
        name: [
            (f.drop or 0.0, f.rate, f.low, f.high)
            for f in found.error_rates
            if f.check == name and f.kind == "detection"
        ]
        for name in found.power_curves
    }
    return png(power_curves(found.power_curves, points, max_drops))
