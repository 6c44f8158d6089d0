"""What is worth knowing of lists before anything is judged."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from fusion_bench.data.run import Run
from fusion_bench.datasets.dataset_findings import (
    Finding,
    check_dead_ids,
    check_duplicate_documents,
)
from fusion_bench.util.formatting import pluralize


def find_in_lists(
    runs: Mapping[str, Run],
    rerankers: Mapping[str, Run],
    queries: Collection[str] | None,
    documents: Mapping[str, str] | None,
) -> list[Finding]:
    """The checks that need no judgments.

    Args:
        runs: Run by name.
        rerankers: Rerank list by name.
        queries: Ids of the queries; None = not given.
        documents: Id → text of every document; None = not given.
    """
    vocabularies = {name: run.vocabulary for name, run in {**runs, **rerankers}.items()}
    return [
        *_check_queries(runs, queries),
        check_duplicate_documents(documents),
        check_dead_ids(vocabularies, documents),
    ]


def _check_queries(runs: Mapping[str, Run], queries: Collection[str] | None) -> Iterator[Finding]:
    """Queries that a list answers, and those without a text."""
    answered = {name: set(run.queries) for name, run in runs.items()}
    known = set().union(*answered.values()) if queries is None else set(queries)
    counts = {name: len(known & ids) for name, ids in answered.items()}
    few = any(count < len(known) for count in counts.values())
    shares = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    yield Finding(
        "queries in the lists",
        "look" if few else "ok",
        f"Of {pluralize(len(known), 'query')} the lists answer: {shares}.",
        "Add the missing answers: a query without any counts 0." if few else "",
    )
    if queries is None:
        yield Finding(
            "texts of the queries",
            "not checked",
            "The texts are not known, and a judge reads them.",
            "Give --queries FILE.",
        )
        return
    missing = sorted(set().union(*answered.values()) - known)
    text = "Every query of the lists has a text."
    if missing:
        text = f"{pluralize(len(missing), 'query')} without a text (for example {missing[0]!r})."
    advice = "Do the files use two kinds of ids? Renew the older file." if missing else ""
    yield Finding("texts of the queries", "look" if missing else "ok", text, advice)
