"""What a dataset holds, and what is worth knowing before trusting a number made from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.records import Run
from fusion_bench.evaluation.report_records import ListInfo
from fusion_bench.evaluation.rerank_list_checks import check_rerank_list, describe_problems
from fusion_bench.io import Dataset
from fusion_bench.measures import no_relevant
from fusion_bench.util.formatting import format_percent as percent
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.unmatched_query_ids import find_unmatched_ids, format_unmatched_ids

#: Zero-scored rows from this share of a run on look like padding.
PADDED = 0.01
#: Unjudged documents count down to this rank.
UNJUDGED_DEPTH = 10


def describe_dataset(dataset: Dataset) -> dict[str, object]:
    """Name, counts, grades, splits, types and one row a list, ready for a table or JSON."""
    queries = [dataset.queries[q] for q in dataset.qrels.queries if q in dataset.queries]
    grades = Counter(dataset.qrels.grades.tolist())
    return {
        "name": dataset.name,
        "version": dataset.spec.version,
        "description": dataset.spec.description,
        "licence": dataset.spec.licence,
        "fingerprint": dataset.fingerprint,
        "judged queries": len(dataset.qrels.queries),
        "judgements": ", ".join(f"grade {g}: {n}" for g, n in sorted(grades.items())),
        "judgments are": dataset.spec.judgments,
        "relevant from grade": dataset.spec.binary_relevance,
        "splits": _counts(query.split for query in queries),
        "types": _counts(query.type for query in queries),
        "groups": len({query.group or query.id for query in queries}) or "none",
        "runs": [_row(dataset, run, "run") for run in dataset.runs.values()],
        "rerank lists": [_row(dataset, run, "rerank") for run in dataset.rerankers.values()],
    }


def _counts(names: Iterator[str | None]) -> str:
    counts = Counter(name for name in names if name is not None)
    return ", ".join(f"{name}: {count}" for name, count in sorted(counts.items())) or "none"


def _row(dataset: Dataset, run: Run, kind: str) -> dict[str, object]:
    sizes = np.diff(run.offsets)
    facts: dict[str, object] = {
        "name": run.name,
        "roles": ", ".join(sorted(run.roles)) or "none",
        "queries": len(run.queries),
        "median depth": int(np.median(sizes)),
        "scores": f"{run.scores.min():g} … {run.scores.max():g}" if len(run.scores) else "none",
    }
    return facts if kind == "run" else facts | {"score space": dataset.spaces[run.name]}


def summarize_dataset(dataset: Dataset) -> list[str]:
    """Queries, lists and unjudged share, in three lines."""
    rows = [
        *(_listed(run, "run") for run in dataset.runs.values()),
        *(_listed(run, "rerank list") for run in dataset.rerankers.values()),
    ]
    judged = [query for query in dataset.qrels.queries if query in dataset.queries]
    splits = _counts(dataset.queries[query].split for query in judged)
    return [
        f"judged queries: {len(dataset.qrels.queries):,}"
        + ("" if splits == "none" else f" (split {splits})"),
        f"lists: {'; '.join(rows)}",
        f"unjudged in the top {UNJUDGED_DEPTH}: {_unjudged(dataset)}",
    ]


def _listed(run: Run, kind: str) -> str:
    sizes = np.diff(run.offsets)
    low, high = (sizes.min(), sizes.max()) if len(sizes) else (0, 0)
    depth = f"{low}" if low == high else f"{low}–{high}"
    return f"{kind} {run.name!r}, {pluralize(len(run.queries), 'query')} to depth {depth}"


def _unjudged(dataset: Dataset) -> str:
    """Share of unjudged documents among the first of each run."""
    if dataset.spec.judgments == "complete":
        return "none, as the judgments are complete"
    runs = align(dataset.qrels, list(dataset.runs.values()))
    top = (runs.ranks >= 1) & (runs.ranks <= UNJUDGED_DEPTH)
    shares = (top & ~runs.judged).sum(axis=1) / np.maximum(top.sum(axis=1), 1)
    pairs = zip(runs.sources, shares.tolist(), strict=True)
    return ", ".join(f"{name!r} {percent(share)}" for name, share in pairs)


def _coverage_notices(dataset: Dataset, info: ListInfo, run: Run, kind: str) -> Iterator[str]:
    """Queries that a list did not answer, and documents that nobody knows."""
    if info.unanswered_queries:
        effect = "scored 0, and counted" if info.kind == "run" else "without a rerank score"
        yield (
            f"{kind} {info.name!r} returned nothing for {info.unanswered_queries} of "
            f"{pluralize(len(dataset.qrels.queries), 'judged query')}: {effect}"
        )
    if not info.has_known_documents:
        where = "is judged" if info.kind == "run" else "stands in any run"
        known = dataset.qrels if info.kind == "run" else next(iter(dataset.runs.values()))
        yield (
            f"no document of {kind} {info.name!r} {where} (for example "
            f"{run.vocabulary[0]!r} against {known.vocabulary[0]!r}): check the document ids"
        )


def _content_notices(info: ListInfo, run: Run, kind: str) -> Iterator[str]:
    """What stands out in a list itself."""
    yield from info.problems
    if info.degraded_queries:
        yield (
            f"rerank list {info.name!r} is degraded: "
            f"{pluralize(info.degraded_queries, 'query')} without {info.provider}'s scores: "
            "run fusion-bench rerank again to fetch them"
        )
    if info.unjudged_queries:
        yield (
            f"{kind} {info.name!r} answers {pluralize(info.unjudged_queries, 'query')} not "
            "judged, and left out: "
            f"{format_unmatched_ids(info.unmatched_queries, info.unjudged_queries)}"
        )
    if info.duplicate_rows:
        yield f"{kind} {info.name!r}: {pluralize(info.duplicate_rows, 'duplicate row')} dropped"
    if info.kind == "run" and info.zero_scores > PADDED * len(run.scores):
        remedy = "dropped them" if run.read_options.drop_zero_scores else "removes them"
        yield (
            f"run {info.name!r} has {pluralize(info.zero_scores, 'row')} scored exactly 0, "
            f"which looks like padding: drop_zero_scores: true {remedy}"
        )


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
        info = ListInfo(
            name=run.name,
            kind="run" if space is None else "rerank",
            roles=tuple(sorted(run.roles)),
            read_options=asdict(run.read_options),
            score_space=space,
            unanswered_queries=len(judged - returned),
            unjudged_queries=len(returned - judged),
            unmatched_queries=find_unmatched_ids(returned, judged),
            duplicate_rows=run.duplicates,
            zero_scores=run.zero_scores,
            has_known_documents=not expected.isdisjoint(run.vocabulary),
        )
        if space is not None:
            check = check_rerank_list(run, space, aligned, dict(dataset.runs))
            meta = dataset.provenance.get(run.name)
            facts = {
                "problems": tuple(describe_problems(check)),
                "degraded_queries": len(dataset.degraded(run.name)),
                "provider": None if meta is None else meta.asked,
                "ledger": None if meta is None else meta.ledger,
            }
            info = info.model_copy(update=facts)
        infos.append(info)
    return infos


def dataset_notices(dataset: Dataset) -> list[str]:
    """One sentence for each thing that is allowed but worth knowing."""
    rerankers = list(dataset.rerankers.values())
    runs = align(dataset.qrels, list(dataset.runs.values()), rerankers=rerankers)
    notices: list[str] = []
    for info in list_infos(dataset, runs):
        run = (dataset.runs if info.kind == "run" else dataset.rerankers)[info.name]
        kind = "run" if info.kind == "run" else "rerank list"
        notices += _coverage_notices(dataset, info, run, kind)
        notices += _content_notices(info, run, kind)
    outside = int(no_relevant(runs, dataset.spec.binary_relevance).sum())
    if outside:
        queries = pluralize(outside, "judged query")
        notices.append(f"{queries} without a relevant document: scored 0, and counted")
    return notices
