"""Systems of several trials: how steady each is, and what would narrow a comparison."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.results.comparison import ComparisonResult
from fusion_bench.evaluation.report_records.results.system import SystemResult
from fusion_bench.evaluation.report_records.results.trials import NarrowingResult, TrialsResult
from fusion_bench.report.page import Column, Finding, Row, Table
from fusion_bench.stats.trials.trial_variance import ENOUGH_TRIALS, FEW_TRIALS
from fusion_bench.util.formatting import (
    format_number,
    format_percent,
    format_rounded,
    list_names,
    pluralize,
)

#: A finding names so many systems that disagree with themselves; the table has all.
MOST_NAMED = 3


def trial_findings(collection: Collection) -> Iterator[Finding]:
    """Which systems have trials, how they disagree, and what narrows the first comparison."""
    rows = _repeated_rows(collection)
    if not rows:
        return
    queries, measure = len(collection.queries), collection.primary_measure
    counts = sorted({len(trials.means) for _, trials in rows})
    details = [
        f"{row.name} disagrees with itself on {trials.disagreeing_pair:,} of "
        f"{pluralize(queries, 'query')} ({measure} of trials 1 and 2)."
        for row, trials in sorted(rows, key=lambda pair: -pair[1].disagreeing_pair)[:MOST_NAMED]
    ]
    few = [row.name for row, trials in rows if len(trials.means) <= FEW_TRIALS]
    yield Finding(
        f"Values are means over {' or '.join(map(str, counts))} trials of "
        f"{list_names([row.name for row, _ in rows])}. Their intervals are for new trials and new "
        f"queries. {describe_few_trials(list_names(few)) if few else ''}"
        f"{_describe_fixed(collection)}Documents of single queries, lists left out and "
        "depths are those of trial 1.",
        key="trials",
        details=tuple(details),
    )
    for item in collection.ranked_comparisons:
        if item.narrowing is not None:
            yield _advise(item, item.narrowing)
            return


def describe_few_trials(names: str) -> str:
    """How many trials the named systems or lists need, as they have 2 or 3."""
    return (
        f"{FEW_TRIALS} trials or fewer hardly tell how far a trial moves all queries together: "
        f"against a list of one trial the intervals are wide for it, others can be too narrow. "
        f"{ENOUGH_TRIALS} trials of {names} are needed. "
    )


def _describe_fixed(collection: Collection) -> str:
    """Which systems have one trial, and what that means; empty = none."""
    names = [row.name for row in collection.ranked_systems if row.trials is None]
    if not names:
        return ""
    verb, counts = ("has", "counts") if len(names) == 1 else ("have", "count")
    return f"{list_names(names)} {verb} one trial and {counts} as fixed. "


def _advise(item: ComparisonResult, plan: NarrowingResult) -> Finding:
    """What narrows an interval most, for as many answers."""
    queries = f"{pluralize(plan.added_queries, 'more query')}, for as many answers,"
    trial, others = (
        _describe_gain(plan.now, width) for width in (plan.one_trial, plan.more_queries)
    )
    text = f"one more trial of each narrows it by {trial}, {queries} by {others}"
    if not plan.prefers_trials:
        text = f"{queries} narrow it by {others}, one more trial of each by {trial}"
    name = f"{item.candidate} - {item.baseline}"
    return Finding(f"To narrow the interval of {name}: {text}.", key="narrowing")


def _describe_gain(now: float, then: float) -> str:
    """The part of an interval that goes, in percent."""
    return format_percent(1 - then / now if now > 0 else 0.0)


def trial_tables(collection: Collection) -> Iterator[Table]:
    """A table of the systems of several trials, and one of their comparisons."""
    if rows := _repeated_rows(collection):
        yield _spread_table(collection, rows)
    if comparisons := [item for item in collection.ranked_comparisons if item.narrowing]:
        yield _narrowing_table(comparisons)


def _repeated_rows(collection: Collection) -> list[tuple[SystemResult, TrialsResult]]:
    """The systems of several trials, the best first."""
    rows = ((row, row.trials) for row in collection.ranked_systems)
    return [(row, trials) for row, trials in rows if trials is not None]


def _spread_table(collection: Collection, pairs: list[tuple[SystemResult, TrialsResult]]) -> Table:
    columns = (
        Column("system", is_text=True),
        *map(Column, ("trials", "lowest", "highest", "sd of means")),
        *map(Column, ("% queries", "% trials", "% both")),
        *map(Column, ("disagree (1, 2)", "disagree (any)")),
    )
    rows = []
    for row, trials in pairs:
        shares = (trials.query_share, trials.trial_share, trials.residual_share)
        cells = (
            row.name,
            f"{len(trials.means):,}×",
            *(format_number(end) for end in (min(trials.means), max(trials.means), trials.sd)),
            *(format_rounded(None if share is None else 100 * share) for share in shares),
            *(f"{count:,}" for count in (trials.disagreeing_pair, trials.disagreeing)),
        )
        rows.append(Row(cells))
    measure, count = collection.primary_measure, pluralize(len(collection.queries), "query")
    notes = (
        f"lowest, highest, sd of means = {measure} of each trial over all queries.",
        "% = parts of the variance of one value: queries differ (queries), a trial differs on all "
        "queries together (trials), a trial differs on one query (both). Crossed random effects.",
        f"disagree = of {count}, those whose value differs between trials 1 and 2, and between any "
        "two.",
    )
    return Table("Repeated trials", columns, tuple(rows), notes)


def _narrowing_table(comparisons: list[ComparisonResult]) -> Table:
    columns = (
        Column("difference", is_text=True),
        *map(Column, ("% from trials", "± now", "± 1 more trial", "queries", "± more queries")),
        *(Column(name, is_optional=True) for name in ("± any trials", "± any queries")),
    )
    rows = []
    for item in comparisons:
        if (plan := item.narrowing) is None:
            continue
        widths = (plan.more_queries, plan.all_trials, plan.all_queries)
        share = item.trial_share
        cells = (
            f"{item.candidate} - {item.baseline}",
            format_rounded(None if share is None else 100 * share),
            *(format_number(width) for width in (plan.now, plan.one_trial)),
            f"+{plan.added_queries:,}",
            *(format_number(width) if width else "" for width in widths),
        )
        rows.append(Row(cells))
    notes = (
        "% from trials = part of the variance that trials of all queries together cause; 0 = the "
        "plain paired test of means over trials is right.",
        "± = expected half width of this interval alone: now, with one more trial of each system "
        "of several, with so many more queries (as many answers), with any number of either. "
        "Blank = 0.",
    )
    return Table("What narrows the differences", columns, tuple(rows), notes)
