"""What speaks against a collection's numbers, in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fusion_bench.evaluation.report_records import Collection, Report, RunInfo
from fusion_bench.report.tables import ranked
from fusion_bench.report.unjudged_gain import judged_alone
from fusion_bench.util.formatting import escape_control_chars, pluralize
from fusion_bench.util.formatting import format_percent as percent
from fusion_bench.util.unmatched_query_ids import format_unmatched_ids

__all__ = ["doubts", "names_of"]

#: Warn where more of the top 10 than this is unjudged.
UNJUDGED = 0.2
#: Warn where ties decide the value of more of the queries than this.
TIED = 0.05
#: Unjudged queries beyond this part of the evaluated ones are a larger list, and no slip.
FEW = 0.1
#: So many names are listed before "and n more".
LISTED = 3


def doubts(report: Report, collection: Collection) -> Iterator[str]:
    """Whatever a reader should know before trusting a number."""
    if report.settings.get("caveat"):
        yield str(report.settings["caveat"])
    yield from _switch(report)
    yield from _inputs(collection)
    yield from _scores(collection)
    yield from _short(collection)
    yield from _unjudged(collection)
    yield from _flips(collection)
    yield from judged_alone(report, collection)
    yield from _tied(collection)


def names_of(names: Sequence[str]) -> str:
    """The first few, and how many more."""
    listed = [escape_control_chars(name) for name in names[:LISTED]]
    if len(names) > LISTED:
        listed.append(f"{len(names) - LISTED} more")
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"


def _switch(report: Report) -> Iterator[str]:
    if not report.provenance.v2_enabled:
        yield (
            "RAG_FUSION_V2_ENABLED is off: rrf_v2 ran as rrf without weights and bonus, and "
            "position_aware as replace."
        )


def _inputs(collection: Collection) -> Iterator[str]:
    """Lists that lack answers or are padded."""
    for run in collection.runs:
        if run.unanswered:
            effect = (
                "where it stands alone they score 0"
                if run.kind == "run"
                else "their candidates have no rerank score"
            )
            yield (
                f"{escape_control_chars(run.name)} returned nothing for "
                f"{pluralize(run.unanswered, 'judged query')} of the dataset: {effect}."
            )
        if _mistaken(run, collection):
            verb = "is" if run.unjudged_queries == 1 else "are"
            ids = format_unmatched_ids(run.strangers, run.unjudged_queries)
            yield (
                f"{escape_control_chars(run.name)} answers "
                f"{pluralize(run.unjudged_queries, 'query')} that {verb} "
                f"not judged, and left out: {escape_control_chars(ids)}."
            )
    for run in collection.runs:
        if not run.known_documents:
            where = "is judged" if run.kind == "run" else "stands in any run"
            yield (
                f"No document of {escape_control_chars(run.name)} {where}: check that the same "
                "document ids are "
                "used everywhere before trusting a number here."
            )
    for run in collection.runs:
        padded = run.kind == "run" and run.zero_scores
        if padded and not run.reading.get("drop_zero_scores"):
            yield (
                f"{escape_control_chars(run.name)} has {pluralize(run.zero_scores, 'row')} scored "
                "exactly 0, most "
                "likely padding that fusion takes for results: see drop_zero_scores."
            )


def _mistaken(run: RunInfo, collection: Collection) -> bool:
    """Whether unjudged queries look like ids gone wrong: they are few, or resemble judged ones.

    A list that answers many more queries than are judged is nothing out of the ordinary.
    """
    few = run.unjudged_queries <= FEW * len(collection.queries)
    return bool(run.strangers) and (few or any(meant is not None for _, meant in run.strangers))


def _scores(collection: Collection) -> Iterator[str]:
    """Rerank lists that are not what their scores say, or not all one provider's."""
    for run in collection.runs:
        if run.degraded:
            yield (
                f"{escape_control_chars(run.name)} is degraded: "
                f"{pluralize(run.degraded, 'query')} of the dataset "
                f"without the scores of {escape_control_chars(run.provider or 'its provider')}."
            )
        for note in run.notes:
            yield f"{escape_control_chars(note[0].upper())}{escape_control_chars(note[1:])}."


def _short(collection: Collection) -> Iterator[str]:
    """Measures that look deeper than ``top_k`` lets a system's list go."""
    found: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for row in ranked(collection):
        top_k = (row.config or {}).get("top_k")
        if top_k is not None:
            deeper = tuple(name for name in collection.measures if _depth(name) > top_k)
            found.setdefault((deeper, top_k), []).append(row.name)
    for (measures, top_k), names in found.items():
        if measures:
            verb = "is" if len(measures) == 1 else "are"
            yield (
                f"{' and '.join(map(escape_control_chars, measures))} of {names_of(names)} {verb} "
                "counted on "
                f"{pluralize(top_k, 'document')} (top_k): what is lost there is no fault of the "
                "ranking."
            )


def _depth(measure: str) -> float:
    """How many places a measure looks at; without a cutoff, all."""
    cutoff = measure.rpartition("@")[2]
    return int(cutoff) if cutoff.isdecimal() else math.inf


def _unjudged(collection: Collection) -> Iterator[str]:
    """Too many unjudged documents to trust a measure; where all are judged there are none."""
    if collection.judgments == "complete":
        return
    rows = [row for row in ranked(collection) if (row.unjudged or 0) > UNJUDGED]
    if rows:
        worst = max(rows, key=lambda row: row.unjudged or 0)
        names = names_of([row.name for row in rows])
        yield (
            f"More than {UNJUDGED:.0%} of the top 10 is unjudged for {names} (at most "
            f"{percent(worst.unjudged)}): good documents may count as bad."
        )


def _flips(collection: Collection) -> Iterator[str]:
    names = [c.candidate for c in collection.comparisons if c.verdict == "no verdict"]
    if names:
        yield (
            f"Over judged documents only, the difference of {names_of(names)} to the baseline does "
            "not keep its sign: unjudged documents decide, so no verdict is drawn."
        )


def _tied(collection: Collection) -> Iterator[str]:
    total = len(collection.queries)
    affected = {
        row.name: ties.affected
        for row in ranked(collection)
        if (ties := row.measures[collection.primary].ties) and ties.affected > TIED * total
    }
    if affected:
        most = max(affected.values())
        yield (
            f"The order of tied documents decides {collection.primary} on more than {TIED:.0%} of "
            f"the queries for {names_of(list(affected))} (at most {most:,} of {total:,}): see the "
            "tie orders."
        )
