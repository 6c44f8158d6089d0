"""What a reranker is: ten lines that anybody can write.

::

    class Overlap:
        identity = Identity(provider="overlap", model="words", space="unit")
        batch = 100

        async def score(self, query: str, documents: Sequence[str]) -> Reply:
            words = set(query.lower().split())
            found = [len(words & set(d.lower().split())) / len(words) for d in documents]
            return Reply(tuple(found))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ProviderError

__all__ = ["Candidate", "Identity", "Reply", "Reranker", "Usage", "check_reply", "rows_to_scores"]

#: A score this far outside [0, 1] is rounding of the server's, not another scale.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Identity:
    """Everything that a score depends on beside the query and the document.

    Attributes:
        provider: Its name.
        model: The model; once a provider has named the one it really used, that one.
        endpoint: URL with version, or a file's digest; empty where there is neither.
        space: What its scores mean.
        truncation: How texts are cut.
        prompt: Version of the prompt, of a language model.
    """

    provider: str
    model: str
    space: ScoreSpace
    endpoint: str = ""
    truncation: str = ""
    prompt: str = ""

    @property
    def label(self) -> str:
        """``provider/model``."""
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True)
class Usage:
    """What a call is billed by.

    Attributes:
        searches: Search units (Cohere: a query with up to 100 documents).
        tokens: Tokens read.
        output_tokens: Tokens written, by a language model.
    """

    searches: float = 0.0
    tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.searches + other.searches,
            self.tokens + other.tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True)
class Reply:
    """One answer.

    Attributes:
        scores: One a document, in the order of the documents.
        model: The model that the provider says it used; None = it does not say.
        usage: What it bills.
        filled: Scores that the model did not give and a rule filled in.
    """

    scores: tuple[float, ...]
    model: str | None = None
    usage: Usage = Usage()
    filled: int = 0


class Reranker(Protocol):
    """Scores documents for a query.

    Attributes:
        identity: What its scores depend on.
        batch: At most so many documents a call.
    """

    @property
    def identity(self) -> Identity:
        """What its scores depend on."""
        ...

    @property
    def batch(self) -> int:
        """At most so many documents a call."""
        ...

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """One score a document.

        Raises:
            ProviderError: It could not; the kind decides what happens next.
        """
        ...


def check_reply(reply: Reply, count: int, identity: Identity) -> Reply:
    """The reply, if it makes sense.

    Args:
        reply: What came back.
        count: Documents that were asked about.
        identity: Who was asked.

    Raises:
        ProviderError: Kind ``malformed``: another number of scores, one that is not finite, or one
            outside the declared score space.
    """
    who = identity.label
    if len(reply.scores) != count:
        message = f"{who}: {len(reply.scores)} scores for {count} documents"
        raise ProviderError(message, kind="malformed")
    low = 0.0 if identity.space == "unit" else -math.inf
    high = {"unit": 1.0, "log_prob": 0.0}.get(identity.space, math.inf)
    for score in reply.scores:
        if not math.isfinite(score) or not low - ROUNDING <= score <= high + ROUNDING:
            raise ProviderError(
                f"{who}: score {score} is outside its score space {identity.space!r}: if that is "
                "what this model gives, declare another 'space'",
                kind="malformed",
            )
    return replace(reply, scores=tuple(min(max(s, low), high) for s in reply.scores))


def rows_to_scores(rows: Any, count: int, score: str) -> tuple[float, ...]:  # noqa: ANN401 - JSON
    """Scores in the order of the documents, from ``[{"index": …, score: …}, …]``.

    Args:
        rows: What should be such a list.
        count: Documents that were asked about.
        score: The key of the score.

    Raises:
        ProviderError: Kind ``malformed``: it is none, or an index is unknown, missing or repeated.
    """
    scores: dict[int, float] = {}
    for row in rows if isinstance(rows, list) else [rows]:
        index, value = (row.get("index"), row.get(score)) if isinstance(row, Mapping) else (0, None)
        if not (isinstance(index, int) and isinstance(value, int | float)) or bool in {
            type(index),
            type(value),
        }:
            raise _malformed_error(f"a result without 'index' and {score!r}")
        if not 0 <= index < count or index in scores:
            raise _malformed_error(f"index {index} for {count} documents is unknown or repeated")
        scores[index] = float(value)
    if len(scores) < count:
        missing = next(i for i in range(count) if i not in scores)
        raise _malformed_error(
            f"{len(scores)} results for {count} documents: index {missing} is missing"
        )
    return tuple(scores[i] for i in range(count))


def _malformed_error(problem: str) -> ProviderError:
    return ProviderError(f"malformed answer: {problem}", kind="malformed")


@dataclass(frozen=True)
class Candidate:
    """One fused document, with its text."""

    id: str
    text: str
    score: float
