"""A list of rerank scores and its provenance, built from the answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fusion_bench.errors import DataError
from fusion_bench.io.provenance import ListMeta
from fusion_bench.rerank.calls.chain import ProviderChain
from fusion_bench.rerank.calls.session import RerankAnswer
from fusion_bench.rerank.candidates import ScoringRequest
from fusion_bench.rerank.ledger import summarize_events
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns, TableView

#: A list of which a greater share of the scores could not be read is degraded.
MOST_UNREAD = 0.05


@dataclass(frozen=True, repr=False)
class WrittenList(TableView):
    """A list on disk.

    Attributes:
        path: The list.
        meta: Its provenance, which stands beside it.
        dataset_entry: The lines that make it part of the ``dataset.yaml``.
        scores: How many it has.
    """

    path: Path
    meta: ListMeta
    dataset_entry: str
    scores: int = 0

    def _summary(self) -> str:
        parts = [f"{pluralize(len(ids), 'query')} by {name}" for name, ids in self._scored.items()]
        unscored, unread = len(self.meta.unscored), self.meta.unread_count
        parts += [f"{unscored} not by {self.meta.asked}"] if unscored else []
        parts += [f"{pluralize(unread, 'score')} not readable"] if unread else []
        return f"WrittenList({str(self.path)!r}, {', '.join(parts)})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a provider, with how many queries it scored."""
        rows = list(self._scored.items())[:limit]
        return {"provider": [n for n, _ in rows], "queries": [len(ids) for _, ids in rows]}

    @property
    def _scored(self) -> dict[str, tuple[str, ...]]:
        return self.meta.providers


def build_list(
    request: ScoringRequest,
    chain: ProviderChain,
    answers: Mapping[str, RerankAnswer],
    events: Iterable[dict[str, object]],
    settings: dict[str, object],
) -> tuple[bytes, ListMeta]:
    """The list as JSON Lines, and its provenance.

    Args:
        request: What was to be scored.
        chain: Who was asked.
        answers: By query, one for each query of the request.
        events: Of the ledger.
        settings: Of the run, as the provenance states them.

    Raises:
        DataError: No query was scored.
    """
    asked, space = chain.first_identity.label, chain.score_space
    rows: list[str] = []
    providers: dict[str, tuple[str, ...]] = {}
    degraded: dict[str, str] = {}
    unread = _unread_positions({query.id: answers[query.id] for query in request.queries})
    for query in request.queries:
        answer = answers[query.id]
        label = answer.provider_label
        providers[label] = (*providers.get(label, ()), query.id)
        if label != asked or answer.degraded_reason:
            degraded[query.id] = answer.degraded_reason or f"{label}, not {asked}"
        for candidate, score in zip(query.candidates, answer.scores_in(space), strict=False):
            row = {"query": query.id, "document": candidate.id, "score": score}
            rows.append(f"{json.dumps(row, ensure_ascii=False)}\n")
    if not rows:
        why = next(iter(degraded.values()), "no query has candidates")
        raise DataError(f"{request.dataset}: no query was scored: {why}")
    if sum(map(len, unread.values())) > MOST_UNREAD * len(rows):
        degraded = _describe_unread(unread, answers) | degraded
    data = "".join(rows).encode()
    return data, ListMeta(
        list_sha256=hashlib.sha256(data).hexdigest(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        dataset=request.dataset,
        system=request.system.name,
        depth=request.depth,
        score_space=space,
        asked=asked,
        providers=providers,
        degraded=degraded,
        unread=unread,
        settings=settings,
        ledger=summarize_events(events) | _count_trials(request),
    )


def _count_trials(request: ScoringRequest) -> dict[str, int]:
    """Says in the ledger that a query has the candidates of several trials, which cost more."""
    return {"trials": request.trials} if request.trials > 1 else {}


def _unread_positions(answers: Mapping[str, RerankAnswer]) -> dict[str, tuple[int, ...]]:
    """Query → the 1-based positions of its scores that could not be read."""
    return {
        query: tuple(position + 1 for position in answer.unread)
        for query, answer in answers.items()
        if answer.unread
    }


def _describe_unread(
    unread: Mapping[str, tuple[int, ...]], answers: Mapping[str, RerankAnswer]
) -> dict[str, str]:
    """Query → how many of its scores could not be read."""
    counts = {query: len(answers[query].scores or ()) for query in unread}
    return {
        query: f"{len(positions)} of {pluralize(counts[query], 'score')} could not be read"
        for query, positions in unread.items()
    }
