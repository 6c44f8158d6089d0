"""What a dataset holds, and what is worth knowing before trusting a number made from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from fusion_bench.align import align
from fusion_bench.load import Dataset
from fusion_bench.measure import no_relevant
from fusion_bench.records import Run
from fusion_bench.results import run_infos

__all__ = ["describe", "notices"]

#: Zero-scored rows from this share of a run on look like padding.
PADDED = 0.01


def describe(dataset: Dataset) -> dict[str, object]:
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


def notices(dataset: Dataset) -> list[str]:
    """One sentence for each thing that is allowed but worth knowing."""
    judged = len(dataset.qrels.queries)
    rerankers = list(dataset.rerankers.values())
    runs = align(dataset.qrels, list(dataset.runs.values()), rerankers=rerankers)
    found = []
    for info in run_infos(dataset, runs):
        run = (dataset.runs if info.kind == "run" else dataset.rerankers)[info.name]
        kind = "run" if info.kind == "run" else "rerank list"
        if info.unanswered:
            effect = "score 0 and count" if info.kind == "run" else "have no rerank score"
            found.append(
                f"{kind} {info.name!r} returned nothing for {info.unanswered} of {judged} judged "
                f"queries: they {effect}"
            )
        if not info.known_documents:
            where = "is judged" if info.kind == "run" else "stands in any run"
            known = dataset.qrels if info.kind == "run" else next(iter(dataset.runs.values()))
            found.append(
                f"no document of {kind} {info.name!r} {where} (for example "
                f"{run.vocabulary[0]!r} against {known.vocabulary[0]!r}): check the document ids"
            )
        found += info.notes
        if info.degraded:
            found.append(
                f"rerank list {info.name!r} is degraded: {info.degraded} queries do not have "
                f"{info.provider}'s scores; fusion-bench rerank scores them when it runs again"
            )
        if info.unjudged_queries:
            found.append(
                f"{kind} {info.name!r} answers {info.unjudged_queries} queries that are not "
                "judged: they are left out"
            )
        if info.duplicates:
            found.append(f"{kind} {info.name!r}: {info.duplicates} duplicate rows were dropped")
        if info.kind == "run" and info.zero_scores > PADDED * len(run.scores):
            remedy = "dropped them" if run.reading.drop_zero_scores else "removes them"
            found.append(
                f"run {info.name!r} has {info.zero_scores} rows scored exactly 0, which looks like "
                f"padding: drop_zero_scores: true {remedy}"
            )
    outside = int(no_relevant(runs, dataset.spec.binary_relevance).sum())
    if outside:
        found.append(f"{outside} judged queries have no relevant document: they score 0 and count")
    return found
