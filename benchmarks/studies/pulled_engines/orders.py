"""The order of an engine's own fused lists, beside the order of their replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

#: Query → documents with their scores, best first.
Lists: TypeAlias = Mapping[str, Sequence[tuple[str, float]]]

#: Scores of a query are equal up to rounding within this share of the greatest one: in 64 bits,
#: and in the 32 bits in which most engines compare them.
EQUAL: Final = 1e-12
EQUAL_IN_32_BITS: Final = 2.0**-21


@dataclass(frozen=True)
class Difference:
    """The first place at which a replay has another order.

    Attributes:
        query: The query.
        rank: The place, from 1.
        document: What the engine has there.
        score: Its score in the replay; None = the replay does not have it.
        replayed: What the replay has there; None = it is shorter.
        replayed_score: The score of that.
    """

    query: str
    rank: int
    document: str
    score: float | None
    replayed: str | None
    replayed_score: float | None

    def __str__(self) -> str:
        return (
            f"{self.query}, rank {self.rank}: {self.document} ({self.score}) where the replay has "
            f"{self.replayed} ({self.replayed_score})"
        )


@dataclass(frozen=True)
class OrderCounts:
    """How many queries have which order.

    Attributes:
        same: The same documents in the same order.
        equal: Another order among documents of equal scores alone.
        equal_in_32_bits: Another order among documents whose scores are equal in 32 bits.
        different: Any other order.
        first: The first of these; None = there is none.
        score_difference: Greatest difference between a score of the engine and of the replay, as a
            share of the greatest score of its query.
    """

    same: int
    equal: int
    equal_in_32_bits: int
    different: int
    first: Difference | None
    score_difference: float


def compare_orders(engine: Lists, replay: Lists, depth: int) -> OrderCounts:
    """Compare the lists of an engine with the beginnings of their replays.

    Args:
        engine: The engine's own lists.
        replay: The replays, uncut, with the scores that decide their order.
        depth: Documents that the engine was asked for.
    """
    counts = dict.fromkeys(("same", "equal", "equal_in_32_bits", "different"), 0)
    first, greatest = None, 0.0
    for query, theirs in engine.items():
        ours = replay.get(query, ())
        kind, difference = _compare_query(query, theirs, ours, depth)
        counts[kind] += 1
        first = first or difference
        scores = dict(ours)
        scale = max(map(abs, scores.values()), default=1.0) or 1.0
        for document, score in theirs:
            if document in scores:
                greatest = max(greatest, abs(score - scores[document]) / scale)
    return OrderCounts(**counts, first=first, score_difference=greatest)


def _compare_query(
    query: str,
    engine: Sequence[tuple[str, float]],
    replay: Sequence[tuple[str, float]],
    depth: int,
) -> tuple[str, Difference | None]:
    if [document for document, _ in engine] == [document for document, _ in replay[:depth]]:
        return "same", None
    if len(engine) != min(depth, len(replay)):
        rank = min(len(engine), len(replay)) + 1
        theirs = engine[rank - 1][0] if rank <= len(engine) else "nothing"
        ours = replay[rank - 1] if rank <= len(replay) else (None, None)
        return "different", Difference(query, rank, theirs, None, *ours)
    scores = dict(replay)
    scale = max(map(abs, scores.values()), default=1.0) or 1.0
    distances = []
    for rank, (document, _) in enumerate(engine, 1):
        ours = replay[rank - 1] if rank <= len(replay) else (None, None)
        score = scores.get(document)
        if score is None or ours[1] is None or abs(score - ours[1]) > EQUAL_IN_32_BITS * scale:
            return "different", Difference(query, rank, document, score, *ours)
        distances.append(abs(score - ours[1]) / scale)
    return ("equal" if max(distances) <= EQUAL else "equal_in_32_bits"), None
