"""What speaks against the numbers of a collection."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fusion_bench.evaluation.report_records import Collection, ListInfo, Report
from fusion_bench.report.evaluation.unjudged_gain import unjudged_gain
from fusion_bench.report.page import Finding
from fusion_bench.util.formatting import format_percent, pluralize
from fusion_bench.util.unmatched_query_ids import format_unmatched_ids

#: Warn where more of the top 10 than this is unjudged.
MAX_UNJUDGED = 0.2
#: Warn where ties decide the value of more of the queries than this.
MAX_TIED = 0.05
#: Unjudged queries beyond this part of the evaluated ones are a larger list, and no mistake.
MAX_UNMATCHED = 0.1
#: So many names are listed before "and n more".
MAX_NAMES = 3


def data_warnings(report: Report, collection: Collection) -> Iterator[Finding]:
    """Whatever a reader should know before trusting a number."""
    if report.settings.get("caveat"):
        yield _warning("caveat", str(report.settings["caveat"]))
    if not report.provenance.v2_enabled:
        yield _warning(
            "v2 disabled",
            "RAG_FUSION_V2_ENABLED is off: rrf_v2 ran as rrf without weights and bonus, and "
            "position_aware as replace.",
        )
    for run in collection.runs:
        yield from _run_warnings(run, collection)
    for run in collection.runs:
        yield from _rerank_warnings(run)
    yield from _top_k_warnings(collection)
    yield from _unjudged_warnings(collection)
    if (gain := unjudged_gain(report, collection)) is not None:
        yield gain
    yield from _tie_warnings(collection)


def _warning(key: str, text: str) -> Finding:
    return Finding(text, "warning", key)


def list_names(names: Sequence[str]) -> str:
    """The first few names, and how many more: ``a, b, c and 2 more``."""
    listed = list(names[:MAX_NAMES])
    if len(names) > MAX_NAMES:
        listed.append(f"{len(names) - MAX_NAMES} more")
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"


def _run_warnings(run: ListInfo, collection: Collection) -> Iterator[Finding]:
    """Lists without answers, with other ids, or padded."""
    is_source = run.kind == "run"
    if run.unanswered_queries:
        effect = "alone it scores 0 there" if is_source else "these keep their fused order"
        count = pluralize(run.unanswered_queries, "judged query")
        yield _warning("unanswered", f"{run.name} has no result for {count}; {effect}.")
    if _has_mistaken_ids(run, collection):
        count = pluralize(run.unjudged_queries, "unjudged query")
        ids = format_unmatched_ids(run.unmatched_queries, run.unjudged_queries)
        yield _warning("unmatched queries", f"{run.name} has {count}, which are ignored: {ids}.")
    if not run.has_known_documents:
        place = "is judged" if is_source else "is in any run"
        yield _warning(
            "unmatched documents",
            f"No document of {run.name} {place}. Check that all files use the same document ids.",
        )
    if is_source and run.zero_scores and not run.read_options.get("drop_zero_scores"):
        yield _warning(
            "zero scores",
            f"{run.name} has {pluralize(run.zero_scores, 'row')} with score 0, probably padding "
            "that fusion counts as results. See drop_zero_scores.",
        )


def _has_mistaken_ids(run: ListInfo, collection: Collection) -> bool:
    """Whether unjudged queries look like mistyped ids: they are few, or resemble judged ones."""
    is_few = run.unjudged_queries <= MAX_UNMATCHED * len(collection.queries)
    has_match = any(meant is not None for _, meant in run.unmatched_queries)
    return bool(run.unmatched_queries) and (is_few or has_match)


def _rerank_warnings(run: ListInfo) -> Iterator[Finding]:
    """Rerank lists whose scores are not what they seem, or come from several providers."""
    if run.degraded_queries:
        yield _warning(
            "degraded",
            f"{run.name} is degraded: {pluralize(run.degraded_queries, 'query')} without scores of "
            f"{run.provider or 'its provider'}.",
        )
    for note in run.problems:
        yield _warning("scores", f"{note[0].upper()}{note[1:]}.")


def _top_k_warnings(collection: Collection) -> Iterator[Finding]:
    """Measures that look deeper than ``top_k`` lets a system's list go."""
    affected: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for row in collection.ranked_systems:
        top_k = (row.config or {}).get("top_k")
        if top_k is not None:
            deeper = tuple(name for name in collection.measures if _cutoff(name) > top_k)
            affected.setdefault((deeper, top_k), []).append(row.name)
    for (measures, top_k), names in affected.items():
        if measures:
            yield _warning(
                "top_k",
                f"top_k cuts the lists of {list_names(names)} to {pluralize(top_k, 'document')}: "
                f"{' and '.join(measures)} cannot see relevant documents below.",
            )


def _cutoff(measure: str) -> float:
    """How many ranks a measure looks at; without a cutoff, all."""
    cutoff = measure.rpartition("@")[2]
    return int(cutoff) if cutoff.isdecimal() else math.inf


def _unjudged_warnings(collection: Collection) -> Iterator[Finding]:
    """Too many unjudged documents to trust a measure, and verdicts that rest on them."""
    systems = [row for row in collection.ranked_systems if (row.unjudged_share or 0) > MAX_UNJUDGED]
    if systems and collection.judgments != "complete":
        highest = max(row.unjudged_share or 0 for row in systems)
        yield _warning(
            "unjudged",
            f"More than {MAX_UNJUDGED:.0%} of the top 10 is unjudged for "
            f"{list_names([row.name for row in systems])} (at most {format_percent(highest)}). "
            "Relevant documents may count as not relevant.",
        )
    names = [c.candidate for c in collection.comparisons if c.answer == "no verdict"]
    if names:
        yield _warning(
            "sign differs",
            f"Over judged documents alone, the difference of {list_names(names)} from the baseline "
            "has the other sign. Unjudged documents decide, so no verdict is drawn.",
        )


def _tie_warnings(collection: Collection) -> Iterator[Finding]:
    total, primary = len(collection.queries), collection.primary_measure
    tied = {
        row.name: ties.affected_queries
        for row in collection.ranked_systems
        if (ties := row.measures[primary].ties) and ties.affected_queries > MAX_TIED * total
    }
    if tied:
        yield _warning(
            "ties",
            f"The order of tied documents changes {primary} on more than {MAX_TIED:.0%} of the "
            f"queries for {list_names(list(tied))} (at most {max(tied.values()):,} of {total:,}). "
            "See the tie range.",
        )
