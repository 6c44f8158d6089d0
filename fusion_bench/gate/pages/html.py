"""A verdict as a page for a browser."""

from __future__ import annotations

from typing import Any

from fusion_bench.gate.pages.check_texts import check_tone
from fusion_bench.gate.records.check_result import CheckResult
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.verdict import ACCEPTED
from fusion_bench.report.html.render import render_html
from fusion_bench.report.page import Page
from fusion_bench.util.formatting import escape_control_chars

HELP = (
    "Each mark is the mean of candidate − reference. The line ends at the one-sided 95 % bound of "
    "Student's t.",
    "The orange mark is the largest drop that the policy allows. A check passes where the whole "
    "line lies right of it; it regresses where the mean is shown to lie left of it.",
    "Where the line crosses the mark, the queries cannot decide: the status is inconclusive.",
)


def gate_html(verdict: GateVerdict, page: Page) -> str:
    """The page of a verdict.

    Args:
        verdict: Whose checks are drawn.
        page: What it says.
    """
    passed = sum(check.status in ACCEPTED for check in verdict.checks)
    number = f"{passed} of {len(verdict.checks)} checks passed" if verdict.checks else "refused"
    return render_html(page, gate_data(verdict), number=number)


def gate_data(verdict: GateVerdict) -> dict[str, Any]:
    """The checks with a difference, as the page draws them.

    ``{"kind": "gate", "checks": [{"name", "status", "tone": "passed|failed|inconclusive",
    "difference", "bound": t bound or null, "max_drop"}], "help": [paragraphs]}``
    """
    checks = [_check_data(each) for each in verdict.checks if each.difference is not None]
    return {"kind": "gate", "checks": checks, "help": list(HELP)}


def _check_data(check: CheckResult) -> dict[str, Any]:
    return {
        "name": escape_control_chars(check.display_name),
        "status": check.stated_status,
        "tone": check_tone(check),
        "difference": check.difference,
        "bound": check.t_bound,
        "max_drop": check.max_drop,
    }
