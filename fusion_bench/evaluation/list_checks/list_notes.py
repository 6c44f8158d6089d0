"""What is doubtful of an input list, a sentence each with its key."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.data.switches import format_condition
from fusion_bench.evaluation.report_records.list_info import ListInfo
from fusion_bench.io.provenance import describe_unread
from fusion_bench.util.formatting import format_number, pluralize
from fusion_bench.util.unmatched_query_ids import format_unmatched_ids


def list_warnings(
    info: ListInfo, most_unmatched: float, *, is_judged: bool = True
) -> Iterator[tuple[str, str]]:
    """What is doubtful of a list: no answers, other ids, padding, order; each with its key.

    Args:
        info: The list.
        most_unmatched: More unjudged queries that resemble no judged one are no mistake.
        is_judged: Whether anything is; else all queries of the dataset are meant.
    """
    is_source = info.kind == "run"
    if info.on_queries == 0:
        condition = format_condition(info.when)
        yield "switched off", f"{info.title} is on for no judged query (when: {condition})."
    if info.unanswered_queries:
        effect = "alone it scores 0 there" if is_source else "these keep their fused order"
        count = pluralize(info.unanswered_queries, "judged query" if is_judged else "query")
        yield "unanswered", f"{info.title} has no result for {count}; {effect}."
    is_few = info.unjudged_queries <= most_unmatched
    if info.unmatched_queries and (is_few or any(meant for _, meant in info.unmatched_queries)):
        count = pluralize(info.unjudged_queries, "unjudged query")
        ids = format_unmatched_ids(info.unmatched_queries, info.unjudged_queries)
        yield "unmatched queries", f"{info.title} has {count}, ignored: {ids}."
    if not info.has_known_documents:
        text = f"No document of {info.title} is {'judged' if is_source else 'in any run'}."
        yield "unmatched documents", f"{text} Check that all files use the same document ids."
    if is_source and info.zero_scores and not info.read_options.get("drop_zero_scores"):
        text = f"{info.title} has {pluralize(info.zero_scores, 'row')} with score 0, probably"
        yield "zero scores", f"{text} padding that fusion counts as results. See drop_zero_scores."
    yield from _order_notes(info)
    if info.degraded_queries:
        count = pluralize(info.degraded_queries, "query")
        provider = info.provider or "its provider"
        text = f"{info.title} is degraded: {count} not, or not fully, scored by {provider}."
        yield "degraded", text
    if info.unread_scores:
        count = pluralize(sum(map(len, info.unread_scores.values())), "score")
        places = describe_unread(info.unread_scores)
        yield "unread scores", f"{info.title} has {count} that could not be read: {places}."
    yield from (("scores", f"{note[0].upper()}{note[1:]}.") for note in info.problems)


def _order_notes(info: ListInfo) -> Iterator[tuple[str, str]]:
    """Reversed and constant lists, opposed rank columns, 32-bit floats; each with its key."""
    if info.is_reversed:
        yield (
            "reversed",
            f"{info.title} seems to be read backwards: nDCG@10 {format_number(info.mean_as_read)}, "
            f"from its end {format_number(info.mean_backwards)}. A greater score must be better: "
            "negate distances.",
        )
    if info.constant_lists:
        yield (
            "constant lists",
            f"{info.title} gives all documents one score for "
            f"{pluralize(info.constant_lists, 'judged query')}. The tie rule alone orders them.",
        )
    if 2 * info.opposed_rank_lists > info.rank_column_lists:
        yield (
            "rank column",
            f"The rank column of {info.title} opposes its scores in {info.opposed_rank_lists:,} of "
            f"the first {pluralize(info.rank_column_lists, 'list')}. Scores decide. Negate them "
            "if they are distances, or set rank_from: column.",
        )
    if info.float32_queries:
        yield (
            "float32",
            f"trec_eval orders {info.title} otherwise for "
            f"{pluralize(info.float32_queries, 'judged query')}, because it compares scores as "
            "32-bit floats.",
        )
