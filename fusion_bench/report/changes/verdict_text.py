"""What two reports show, in a sentence a collection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.evaluation.report_changes.records import (
    CollectionChange,
    ReportChange,
    SystemChange,
)
from fusion_bench.report.answer_texts import format_answer
from fusion_bench.report.page import Finding, Tone
from fusion_bench.stats.answers import BETTER, WORSE
from fusion_bench.util.formatting import format_difference, format_number, pluralize


def change_headline(change: ReportChange, min_gain: float, alpha: float) -> Finding:
    """The verdict over all collections.

    Args:
        change: With its paired comparisons.
        min_gain: The least gain, as answers name it.
        alpha: 1 − coverage of the intervals.
    """
    shared = [each for each in change.collections if each.status == "both"]
    if not shared:
        return Finding("The reports have no collection in common.", "warning", "decision")
    verdicts = [_describe(each, min_gain, alpha) for each in shared]
    if len(verdicts) == 1:
        return verdicts[0]
    tones = {finding.tone for finding in verdicts}
    lines = tuple(line for finding in verdicts for line in (finding.text, *finding.details))
    tone = tones.pop() if len(tones) == 1 else "plain"
    return Finding(f"Changes on {len(verdicts)} collections:", tone, "decision", lines)


def change_number(change: ReportChange) -> str:
    """The verdict in a few words: ``2 better, 1 worse``."""
    rows = [row for each in change.collections for row in each.systems]
    if all(row.difference is None for row in rows):
        return "not comparable"
    if all(row.comparison is None for row in rows):
        changed = sum(row.is_changed for row in rows)
        return f"{pluralize(changed, 'system')} changed" if changed else "no change"
    better, worse = (len(_with_answer(rows, answers)) for answers in (BETTER, WORSE))
    if better or worse:
        return f"{better:,} better, {worse:,} worse"
    is_moved = any(row.better or row.worse for row in rows)
    return "no difference shown" if is_moved else "no value changed"


def _with_answer(rows: Sequence[SystemChange], answers: Sequence[str]) -> list[SystemChange]:
    return [row for row in rows if row.answer in answers]


def _describe(change: CollectionChange, min_gain: float, alpha: float) -> Finding:
    """Counts, then the greatest gain and loss, then the best system then and now."""
    rows = [row for row in change.systems if row.status == "both"]
    moved = [row for row in rows if row.better or row.worse]
    where = f"{change.measure} on {change.name}"
    lines = (*_describe_extremes(moved, min_gain, alpha), *_describe_best(change))
    if all(row.difference is None for row in rows):
        missing = "query with values of the measure" if rows else "system"
        text = f"{where} cannot be compared: the reports have no {missing} in common."
        return Finding(text, "warning", "decision")
    if not moved:
        text = f"No value of {pluralize(len(rows), 'system')} changed in {where}."
        return Finding(text, "plain", "decision", lines)
    if all(row.comparison is None for row in rows):
        text = f"{len(moved):,} of {pluralize(len(rows), 'system')} changed in {where}: not tested."
        return Finding(text, "warning", "decision", lines)
    better, worse = _with_answer(moved, BETTER), _with_answer(moved, WORSE)
    open_count = len(moved) - len(better) - len(worse)
    text = (
        f"{len(better):,} better, {len(worse):,} worse, {open_count:,} changed but not decided, "
        f"{len(rows) - len(moved):,} with the same values: {where}."
    )
    tone: Tone = "plain"
    if better and not worse:
        tone = "better"
    if worse and not better:
        tone = "worse"
    return Finding(text, tone, "decision", lines)


def _describe_extremes(
    moved: Sequence[SystemChange], min_gain: float, alpha: float
) -> Iterator[str]:
    """The systems that gained and lost most."""
    known = [row for row in moved if row.difference is not None]
    gain = max(known, key=lambda row: row.difference or 0, default=None)
    loss = min(known, key=lambda row: row.difference or 0, default=None)
    for name, row, sign in (("gain", gain, 1), ("loss", loss, -1)):
        if row is not None and row.difference is not None and row.difference * sign > 0:
            size = format_number(row.difference, signed=True)
            if row.comparison is not None:
                size = format_difference(row.difference, row.low, row.high)
            answer = format_answer(row.answer, min_gain, alpha=alpha)
            verdict = f": {answer}" if answer else ""
            yield (
                f"Greatest {name}: {row.name}, {format_number(row.then)} → "
                f"{format_number(row.now)} ({size}){verdict}."
            )


def _describe_best(change: CollectionChange) -> Iterator[str]:
    """The highest means; they need not be proven."""
    then = [row for row in change.systems if row.then is not None]
    now = [row for row in change.systems if row.now is not None]
    if not then or not now:
        return
    before = max(then, key=lambda row: row.then or 0)
    after = max(now, key=lambda row: row.now or 0)
    means = f"{format_number(before.then)} then, {format_number(after.now)} now"
    if before.name == after.name:
        yield f"The highest mean is that of {after.name} in both reports: {means}."
    else:
        yield (
            f"The highest mean is that of {after.name}, {format_number(after.now)}; it was that of "
            f"{before.name}, {format_number(before.then)}."
        )
