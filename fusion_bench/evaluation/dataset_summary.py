"""What a dataset holds, and what is worth knowing before trusting a number made from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.data.switches import format_condition
from fusion_bench.evaluation.list_checks.list_facts import list_facts
from fusion_bench.evaluation.list_checks.list_notes import order_notes
from fusion_bench.evaluation.near_duplicates import (
    describe_near_duplicates,
    find_near_duplicates,
)
from fusion_bench.evaluation.report_records.list_info import ListInfo
from fusion_bench.evaluation.rerank_list_checks import check_rerank_list, describe_problems
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.provenance import describe_unread
from fusion_bench.measures import no_relevant
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.unmatched_query_ids import find_unmatched_ids, format_unmatched_ids

#: Of a field with more values only their number is said.
MOST_VALUES = 12
#: Unjudged documents count down to this rank.
UNJUDGED_DEPTH = 10


def describe_dataset(dataset: Dataset) -> dict[str, object]:
    """Name, counts, grades, splits, types and one record a list, as plain data for JSON."""
    queries = [dataset.queries[q] for q in dataset.qrels.queries if q in dataset.queries]
    grades = Counter(dataset.qrels.grades.tolist())
    return {
        "name": dataset.name,
        "version": dataset.spec.version,
        "description": dataset.spec.description,
        "license": dataset.spec.license,
        "fingerprint": dataset.fingerprint,
        "judged_queries": len(dataset.qrels.queries),
        "grades": {str(grade): count for grade, count in sorted(grades.items())},
        "judgments": dataset.spec.judgments,
        "binary_relevance": dataset.spec.binary_relevance,
        "splits": _counts(query.split for query in queries),
        "types": _counts(query.type for query in queries),
        "intents": _counts(query.intent for query in queries),
        "fields": _describe_fields(queries),
        "groups": len({query.group or query.id for query in queries}),
        "runs": [_run_row(dataset, run) for run in dataset.runs.values()],
        "rerank_lists": [
            _row(run) | {"score_space": dataset.spaces[run.name]}
            for run in dataset.rerankers.values()
        ],
    }


def _describe_fields(queries: Sequence[Query]) -> dict[str, dict[str, int] | int]:
    """Of every other field how many queries have each value; of many values their number."""
    names = dict.fromkeys(name for query in queries for name in query.fields)
    counts = {name: _counts(query.fields.get(name) for query in queries) for name in names}
    return {
        name: values if len(values) <= MOST_VALUES else len(values)
        for name, values in counts.items()
    }


def _counts(names: Iterator[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(name for name in names if name is not None).items()))


def _run_row(dataset: Dataset, run: Run) -> dict[str, object]:
    """A row of the runs; where some run has a switch, with how many judged queries turn it on."""
    if all(other.switch is None for other in dataset.runs.values()):
        return _row(run)
    judged = dataset.qrels.queries
    on = len(judged) if run.switch is None else len(run.switch.queries.intersection(judged))
    condition = "" if run.switch is None else format_condition(run.switch.condition)
    return _row(run) | {"when": condition or None, "on_queries": on}


def _row(run: Run) -> dict[str, object]:
    sizes = np.diff(run.offsets)
    sizes = sizes if run.switch is None else sizes[sizes > 0]
    return {
        "name": run.name,
        "roles": sorted(run.roles),
        "queries": len(sizes),
        "median_depth": int(np.median(sizes)) if len(sizes) else 0,
        "lowest_score": float(run.scores.min()) if len(run.scores) else None,
        "highest_score": float(run.scores.max()) if len(run.scores) else None,
    }


def unjudged_shares(dataset: Dataset) -> dict[str, float]:
    """Share of unjudged documents among the first ten of each run; 0 with complete judgments."""
    if dataset.spec.judgments == "complete":
        return dict.fromkeys(dataset.runs, 0.0)
    runs = align(dataset.qrels, list(dataset.runs.values()))
    top = (runs.ranks >= 1) & (runs.ranks <= UNJUDGED_DEPTH)
    shares = (top & ~runs.judged).sum(axis=1) / np.maximum(top.sum(axis=1), 1)
    return dict(zip(runs.sources, shares.tolist(), strict=True))


def list_warnings(info: ListInfo, most_unmatched: float) -> Iterator[tuple[str, str]]:
    """What is doubtful of a list: no answers, other ids, padding, order; each with its key.

    Args:
        info: The list.
        most_unmatched: More unjudged queries that resemble no judged one are no mistake.
    """
    is_source = info.kind == "run"
    if info.on_queries == 0:
        condition = format_condition(info.when)
        yield "switched off", f"{info.name} is on for no judged query (when: {condition})."
    if info.unanswered_queries:
        effect = "alone it scores 0 there" if is_source else "these keep their fused order"
        count = pluralize(info.unanswered_queries, "judged query")
        yield "unanswered", f"{info.name} has no result for {count}; {effect}."
    is_few = info.unjudged_queries <= most_unmatched
    if info.unmatched_queries and (is_few or any(meant for _, meant in info.unmatched_queries)):
        count = pluralize(info.unjudged_queries, "unjudged query")
        ids = format_unmatched_ids(info.unmatched_queries, info.unjudged_queries)
        yield "unmatched queries", f"{info.name} has {count}, which are ignored: {ids}."
    if not info.has_known_documents:
        text = f"No document of {info.name} is {'judged' if is_source else 'in any run'}."
        yield "unmatched documents", f"{text} Check that all files use the same document ids."
    if is_source and info.zero_scores and not info.read_options.get("drop_zero_scores"):
        text = f"{info.name} has {pluralize(info.zero_scores, 'row')} with score 0, probably"
        yield "zero scores", f"{text} padding that fusion counts as results. See drop_zero_scores."
    yield from order_notes(info)
    if info.degraded_queries:
        count = pluralize(info.degraded_queries, "query")
        provider = info.provider or "its provider"
        text = f"{info.name} is degraded: {count} not, or not fully, scored by {provider}."
        yield "degraded", text
    if info.unread_scores:
        count = pluralize(sum(map(len, info.unread_scores.values())), "score")
        places = describe_unread(info.unread_scores)
        yield "unread scores", f"{info.name} has {count} that could not be read: {places}."
    yield from (("scores", f"{note[0].upper()}{note[1:]}.") for note in info.problems)


def _rerank_facts(
    dataset: Dataset, run: Run, space: ScoreSpace, aligned: AlignedRuns
) -> dict[str, Any]:
    """What is known of a rerank list beside what every list has."""
    meta = dataset.provenance.get(run.name)
    check = check_rerank_list(run, space, aligned, dict(dataset.runs))
    facts: dict[str, Any] = {
        "problems": tuple(describe_problems(check)),
        "degraded_queries": len(dataset.degraded(run.name)),
    }
    if meta is None:
        return facts
    return facts | {"provider": meta.asked, "ledger": meta.ledger, "unread_scores": meta.unread}


def list_infos(dataset: Dataset, aligned: AlignedRuns) -> list[ListInfo]:
    """What was noticed about each input list, sources first.

    Args:
        dataset: With the lists that are used.
        aligned: The same lists, over the queries that are looked at.
    """
    judged = set(dataset.qrels.queries)
    documents = set(dataset.qrels.vocabulary)
    returned_by_any = {document for run in dataset.runs.values() for document in run.vocabulary}
    infos = []
    for run in (*dataset.runs.values(), *dataset.rerankers.values()):
        space = dataset.spaces[run.name] if run.name in dataset.rerankers else None
        expected = documents if space is None else returned_by_any
        returned = {q for q, size in zip(run.queries, np.diff(run.offsets), strict=True) if size}
        asked = judged if run.switch is None else judged & run.switch.queries
        facts: dict[str, Any] = {}
        if run.switch is not None:
            facts = {"when": dict(run.switch.condition), "on_queries": len(asked)}
        if space is not None:
            facts = _rerank_facts(dataset, run, space, aligned)
        info = ListInfo(
            name=run.name,
            kind="run" if space is None else "rerank",
            roles=tuple(sorted(run.roles)),
            read_options=asdict(run.read_options),
            score_space=space,
            unanswered_queries=len(asked - returned),
            unjudged_queries=len(returned - judged),
            unmatched_queries=find_unmatched_ids(returned, judged),
            duplicate_rows=run.duplicates,
            zero_scores=run.zero_scores,
            has_known_documents=not expected.isdisjoint(run.vocabulary),
            **list_facts(dataset, run, aligned),
            **facts,
        )
        infos.append(info)
    return infos


def dataset_notices(dataset: Dataset) -> list[str]:
    """One sentence for each thing that is allowed but worth knowing."""
    rerankers = list(dataset.rerankers.values())
    runs = align(dataset.qrels, list(dataset.runs.values()), rerankers=rerankers)
    infos = list_infos(dataset, runs)
    notices = [text for info in infos for _, text in list_warnings(info, np.inf)]
    for info in infos:
        if info.on_queries:
            condition = format_condition(info.when)
            rest = f"{info.on_queries:,} of {pluralize(len(runs.queries), 'judged query')}"
            notices.append(f"{info.name} is on for {rest} (when: {condition}).")
        if info.duplicate_rows:
            count = pluralize(info.duplicate_rows, "duplicate row")
            notices.append(f"{info.name} had {count}, which were dropped.")
    negative = [info.name for info in infos if info.kind == "run" and (info.lowest_score or 0) < 0]
    if negative:
        notices.append(
            f"Scores below 0 in {' and '.join(negative)}: with missing: zero, a document that a "
            "list lacks counts 0, more than one that the list returned with less."
        )
    outside = int(no_relevant(runs, dataset.spec.binary_relevance).sum())
    if outside:
        count = pluralize(outside, "judged query")
        notices.append(f"{count} without a relevant document: scored 0, and counted.")
    if (duplicates := find_near_duplicates(dataset, min_share=0)) is not None:
        notices.append(describe_near_duplicates(duplicates))
    return notices
