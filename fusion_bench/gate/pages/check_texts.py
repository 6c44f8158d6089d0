"""A check as the row of a table, and as a sentence."""

from __future__ import annotations

from fusion_bench.gate.records.check_result import (
    CheckOutcome,
    CheckResult,
    GoldenResult,
    GuardResult,
)
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.verdict import ALARMS
from fusion_bench.report.judging.judge_line import JudgePlace, format_pool_line
from fusion_bench.report.page import Column, Tone
from fusion_bench.util.formatting import format_number, pluralize

#: Above this many tolerances, noise and not the tolerance sets the minimum detectable drop.
NOISY = 1.5
#: With fewer changed queries, large losses of a few in a hundred may not have been seen yet.
FEW_CHANGED = 100
#: Of the table of checks.
CHECK_COLUMNS = (
    Column("check", is_text=True),
    Column("status", is_text=True),
    Column("baseline", is_optional=True),
    Column("candidate", is_optional=True),
    Column("difference"),
    Column("t bound", is_optional=True),
    Column("betting bound", is_optional=True),
    Column("max_drop"),
    Column("adjusted p", is_optional=True),
    Column("changed", is_optional=True),
    Column("min. detectable drop"),
    Column("P(pass)", is_optional=True),
    Column("P(pass on these queries)", is_optional=True),
    Column("P(alarm)", is_optional=True),
    Column("P(passes) at −max_drop", is_optional=True),
)


def check_tone(check: CheckOutcome) -> Tone:
    """The tone of a check, whatever the policy does with its status."""
    if check.error is not None or check.status in {"inconclusive", "unjudged decide"}:
        return "inconclusive"
    return "failed" if check.status in ALARMS else "passed"


def check_cells(check: CheckResult) -> tuple[str, ...]:
    """The row of a check, one cell for each of :data:`CHECK_COLUMNS`."""
    return (
        check.display_name,
        "error" if check.error is not None else check.stated_status,
        format_number(check.baseline_mean),
        format_number(check.candidate_mean),
        format_number(check.difference, signed=True),
        format_number(check.t_bound, signed=True),
        format_number(check.betting_bound, signed=True),
        f"{check.max_drop:g}",
        format_number(check.p_fell),
        f"{check.changed} of {check.queries}",
        format_number(check.min_detectable_drop),
        *map(_format_rate, (check.pass_rate, check.small_pass_rate, check.alarm_rate)),
        _format_rate(check.false_pass_rate),
    )


def _format_rate(rate: float | None) -> str:
    return "n/a" if rate is None else f"{100 * rate:.1f} %"


def describe_check(check: CheckResult, verdict: GateVerdict | None = None) -> str:
    """A check's statistics in one sentence.

    Args:
        check: The check.
        verdict: That it belongs to: from it comes the command that judges what decides.
    """
    if check.error is not None:
        return f"not checked: {check.error}"
    is_decided = check.status == "unjudged decide"
    statistics = zip(CHECK_COLUMNS[2:9], check_cells(check)[2:9], strict=True)
    text = ", ".join(f"{column.header} {cell}" for column, cell in statistics)
    queries = pluralize(check.queries, "query")
    text += f"; {check.changed} of {queries} changed, {check.losses} for the worse"
    if check.unjudged is not None and (check.unjudged.has_unjudged or is_decided):
        text += f"; {check.unjudged.description}"
    if check.trials is not None:
        text += f"; {check.trials.description}"
    if is_decided and verdict is not None:
        text += f"; judge these first: {judge_line_of(check, verdict)}"
    if check.status == "inconclusive" and check.min_detectable_drop is not None:
        text += f"; {_describe_power(check)}"
    return text


def judge_line_of(check: CheckResult, verdict: GateVerdict) -> str:
    """The command that asks for the documents of the gated system."""
    collections = {each.collection for each in verdict.checks}
    dataset = check.collection if len(collections) > 1 else None
    name = verdict.experiment_file or f"{verdict.experiment}.yaml"
    return format_pool_line(JudgePlace(name, dataset, verdict.overrides), verdict.system)


def describe_query_check(check: GuardResult | GoldenResult) -> str:
    """A guard or a golden query in one sentence, with its outcome."""
    if isinstance(check, GuardResult):
        text = (
            f"{pluralize(check.violations, 'query')} ({100 * check.share:.2f} %) lost more than "
            f"{check.max_loss:g} in {check.measure}, allowed {100 * check.max_share:g} %"
        )
    else:
        rank = "not in the list" if check.rank is None else f"at rank {check.rank}"
        text = f"query {check.query!r}: {check.document!r} is {rank}, allowed top {check.top}"
    return f"{text}: {check.outcome}"


def power_warning(check: CheckResult) -> str | None:
    """Why a check cannot detect drops near its tolerance; None = it can, or it is not known.

    An alarm requires a mean below −m, so the minimum detectable drop exceeds m for any number
    of queries. Up to about 1.4 m the tolerance itself sets it. Beyond that noise does, which the
    square root of the number of queries divides.
    """
    drop = check.min_detectable_drop
    if drop is None or drop <= NOISY * check.max_drop:
        return None
    return _describe_power(check)


def _describe_power(check: CheckResult) -> str:
    """The minimum detectable drop, and the queries that the check has and needs to pass."""
    needed = "no number suffices" if check.max_drop == 0 else "an unknown number is needed"
    if check.needed is not None:
        needed = f"{check.needed} are needed"
    elif check.max_drop > 0 and check.trials is not None and check.trials.share > 0:
        needed = "more trials are needed, as queries alone never remove their effect,"
    groups = ""
    if check.groups < check.queries:
        groups = f" in {pluralize(check.groups, 'group')}"
        if check.design_effect is not None:
            groups += f" (design effect {check.design_effect:.2g})"
    return (
        f"minimum detectable drop (80 % power) {format_number(check.min_detectable_drop)} with "
        f"{pluralize(check.queries, 'query')}{groups}; "
        f"{needed} to pass with max_drop {check.max_drop:g} where nothing is lost (80 % power)"
    )


def has_few_changes(check: CheckResult) -> bool:
    """Whether too few queries changed for rare large losses to show."""
    return 0 < check.changed < FEW_CHANGED
