"""The warnings of a report about its input lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fusion_bench.checks.records import DataWarning, ListInfo
from fusion_bench.data.qrels import format_unmatched_ids
from fusion_bench.data.records import format_condition
from fusion_bench.io.provenance import describe_unread
from fusion_bench.util.formatting import format_number, list_names, pluralize


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


#: Unjudged queries beyond this part of the evaluated ones are a larger list, and no mistake.
MAX_UNMATCHED: Final = 0.1
#: Normalizers that leave scores below 0 there.
KEEPS_SIGN: Final = frozenset({"none", "max", "l2", "arctan"})


def find_data_warnings(
    runs: Sequence[ListInfo],
    queries: int,
    configs: Mapping[str, Mapping[str, Any]],
    measures: Sequence[str],
) -> Iterator[DataWarning]:
    """What a reader should know of the lists before trusting a number made from them.

    Args:
        runs: The lists.
        queries: Number of evaluated queries.
        configs: Resolved configuration of each system, by name.
        measures: Names of the measures.
    """
    yield from find_list_warnings(runs, queries)
    yield from _find_cut_measures(configs, measures)
    yield from _find_negative_scores(runs, configs)


def find_list_warnings(runs: Sequence[ListInfo], queries: int) -> Iterator[DataWarning]:
    """What is doubtful of the lists alone.

    Args:
        runs: The lists.
        queries: Number of evaluated queries.
    """
    for run in runs:
        for key, text in list_warnings(run, MAX_UNMATCHED * queries):
            yield DataWarning(key=key, text=text)


def _find_cut_measures(
    configs: Mapping[str, Mapping[str, Any]], measures: Sequence[str]
) -> Iterator[DataWarning]:
    """Measures that look deeper than ``top_k`` lets a system's list go."""
    systems: dict[int, list[str]] = {}
    for name, config in configs.items():
        if (top_k := config.get("top_k")) is not None:
            systems.setdefault(top_k, []).append(name)
    # A measure without a cutoff looks at all ranks.
    cutoffs = {name: name.rpartition("@")[2] for name in measures}
    for top_k, names in systems.items():
        deeper = [
            n for n, cutoff in cutoffs.items() if not cutoff.isdecimal() or int(cutoff) > top_k
        ]
        if deeper:
            text = (
                f"top_k cuts the lists of {list_names(names)} to {pluralize(top_k, 'document')}: "
                f"{' and '.join(deeper)} cannot see relevant documents below."
            )
            yield DataWarning(key="top_k", text=text)


def _find_negative_scores(
    runs: Sequence[ListInfo], configs: Mapping[str, Mapping[str, Any]]
) -> Iterator[DataWarning]:
    """Systems for which absence from a list beats a score below 0 in it."""
    lowest: dict[str, float] = {}
    for info in runs:  # one a trial
        lowest[info.name] = min(info.lowest_score or 0.0, lowest.get(info.name, 0.0))
    systems: list[str] = []
    lists: dict[str, None] = {}
    for name, config in configs.items():
        fusion = config.get("fusion") or {}
        is_zero = fusion.get("missing") == "zero" or fusion.get("method") == "comb_sum"
        normalize = fusion.get("normalize") or "none"
        method = normalize if isinstance(normalize, str) else normalize.get("method")
        negative = [run for run in config.get("runs", ()) if lowest.get(run, 0.0) < 0]
        if is_zero and method in KEEPS_SIGN and negative and len(config["runs"]) > 1:
            systems.append(name)
            lists |= dict.fromkeys(negative)
    if systems:
        text = (
            f"{list_names([*lists])} with scores below 0: in {list_names(systems)} an absent "
            "document counts 0, so it stands above one that the list returned with less."
        )
        yield DataWarning(key="missing zero", text=text)
