"""Scores and events of a running service: the most recent ones, in memory."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fusion_bench.rerank.protocol import Identity


class RecentScores:
    """What :class:`~fusion_bench.rerank.store.ScoreStore` keeps, up to a limit.

    Args:
        pairs: Most pairs of query and document whose score is kept; more than the queries that
            are under way at once need.
        events: Most events that are kept.
    """

    def __init__(self, pairs: int = 100_000, events: int = 10_000) -> None:
        self._limit = pairs
        # Score, and whether it could not be read and was filled in.
        self._scores: OrderedDict[tuple[Identity, str, str], tuple[float, bool]] = OrderedDict()
        self._models: dict[Identity, str] = {}
        self._events: deque[tuple[str, Mapping[str, Any]]] = deque(maxlen=events)

    def read_scores(
        self, identity: Identity, query: str, documents: Sequence[str]
    ) -> list[float | None]:
        """The score of each document text; None where none is kept."""
        known = (self._scores.get((identity, query, document)) for document in documents)
        return [None if kept is None else kept[0] for kept in known]

    def find_unread(
        self, identity: Identity, query: str, documents: Sequence[str]
    ) -> tuple[int, ...]:
        """The 0-based positions of the documents whose kept score was filled in."""
        known = (self._scores.get((identity, query, document)) for document in documents)
        return tuple(i for i, kept in enumerate(known) if kept is not None and kept[1])

    def save_scores(
        self,
        identity: Identity,
        query: str,
        scores: Mapping[str, float],
        event: tuple[str, Mapping[str, Any]] | None = None,
        *,
        unread: Collection[str] = (),
    ) -> None:
        """Keep the scores of one call and its event; arguments as of the store."""
        for document, score in scores.items():
            self._scores[identity, query, document] = score, document in unread
        while len(self._scores) > self._limit:
            self._scores.popitem(last=False)
        if event is not None:
            self.record_event(*event)

    def resolved_model(self, identity: Identity) -> str:
        """The model that the provider last resolved the name to; the name itself if unknown."""
        return self._models.get(identity, identity.model)

    def save_model(self, identity: Identity, model: str) -> None:
        """Keep the model that a provider resolved the name to."""
        self._models[identity] = model

    def record_event(self, run: str, event: Mapping[str, Any]) -> None:
        """Keep an event of a run."""
        self._events.append((run, dict(event)))

    def read_events(self, run: str) -> list[Mapping[str, Any]]:
        """The kept events of a run, in order."""
        return [event for name, event in self._events if name == run]
