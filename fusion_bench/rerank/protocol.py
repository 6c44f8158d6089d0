"""The protocol of a reranker, and checks of its replies.

::

    class Overlap:
        identity = Identity(provider="overlap", model="words", space="unit")
        batch = 100

        async def score(self, query: str, documents: Sequence[str]) -> Reply:
            words = set(query.lower().split())
            scores = [len(words & set(d.lower().split())) / len(words) for d in documents]
            return Reply(tuple(scores))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from operator import add
from typing import Any, Protocol

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ProviderError
from fusion_bench.util.http.json_fields import malformed_error

#: A score this far outside its space is rounded by the server.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Identity:
    """Everything that a score depends on besides the query and the document.

    Attributes:
        provider: Name of the provider.
        model: The model, as the provider resolved it if it says so.
        endpoint: URL with version, or a file's digest; empty where there is neither.
        space: What its scores mean.
        truncation: How texts are cut.
        prompt: Digest and parameters of a language model's prompt.
    """

    provider: str
    model: str
    space: ScoreSpace
    endpoint: str = ""
    truncation: str = ""
    prompt: str = ""

    @property
    def label(self) -> str:
        """``provider/model``, or the provider alone where no model is known."""
        return f"{self.provider}/{self.model}" if self.model else self.provider


@dataclass(frozen=True)
class Usage:
    """Billed usage of a call.

    Attributes:
        searches: Search units: one a request (Cohere: a query with up to 100 documents).
        tokens: Input tokens.
        output_tokens: Output tokens of a language model.
    """

    searches: float = 0.0
    tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Reply:
    """Reply to one call.

    Attributes:
        scores: One per document, in the order of the documents.
        model: The model that the provider says it used; None = it does not say.
        usage: What it bills.
        unread: The 0-based positions of scores that could not be read and are filled in.
    """

    scores: tuple[float, ...]
    model: str | None = None
    usage: Usage = Usage()
    unread: tuple[int, ...] = ()


class Reranker(Protocol):
    """Scores documents for a query.

    Attributes:
        identity: What its scores depend on.
        batch: Most documents per call.
    """

    identity: Identity
    batch: int

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """One score per document.

        Raises:
            ProviderError: The call failed; the kind decides what happens next.
        """
        ...


def check_reply(reply: Reply, count: int, identity: Identity) -> Reply:
    """The reply, with scores rounded into their space.

    Args:
        reply: The reply.
        count: Number of documents in the call.
        identity: The reranker.

    Raises:
        ProviderError: Kind ``malformed``: a wrong number of scores, a score that is not finite or
            outside the declared space, or an unread position without a score.
    """
    who = identity.label
    if not isinstance(reply, Reply):
        raise ProviderError(f"{who}: a Reply is needed, given {reply!r:.80}", kind="malformed")
    if len(reply.scores) != count:
        message = f"{who}: {len(reply.scores)} scores for {count} documents"
        raise ProviderError(message, kind="malformed")
    if not set(reply.unread) <= set(range(count)):
        message = f"{who}: unread positions {reply.unread} of {count} documents"
        raise ProviderError(message, kind="malformed")
    bounds = {"unit": (0.0, 1.0), "log_prob": (-math.inf, 0.0)}
    low, high = bounds.get(identity.space, (-math.inf, math.inf))
    if not all(map(_is_finite, reply.scores)):
        raise ProviderError(f"{who}: a score is no finite number", kind="malformed")
    for score in reply.scores:
        if not low - ROUNDING <= score <= high + ROUNDING:
            raise ProviderError(
                f"{who}: score {score} is outside the score space {identity.space!r}: declare the "
                "right 'space'",
                kind="malformed",
            )
    return replace(reply, scores=tuple(min(max(s, low), high) for s in reply.scores))


def _is_finite(score: object) -> bool:
    try:
        return not isinstance(score, bool) and math.isfinite(score)  # type: ignore[arg-type]
    except (TypeError, OverflowError):  # no number, or a whole number of 400 digits
        return False


def rows_to_scores(rows: Any, count: int, score: str) -> tuple[float, ...]:  # noqa: ANN401 - JSON
    """Scores in the order of the documents; arguments as of :func:`read_rows`.

    Raises:
        ProviderError: Kind ``malformed``: no list, or an index is unknown, missing or repeated.
    """
    scores = read_rows(rows, count, score)
    if missing := set(range(count)) - set(scores):
        problem = f"{len(scores)} results for {count} documents: index {min(missing)} is missing"
        raise malformed_error(problem)
    return tuple(scores[i] for i in range(count))


def read_rows(rows: Any, count: int, score: str) -> dict[int, float]:  # noqa: ANN401 - JSON
    """Position of a document → its score, from ``[{"index": …, score: …}, …]``, in that order.

    Args:
        rows: The list.
        count: Number of documents in the call.
        score: The key of the score.

    Raises:
        ProviderError: Kind ``malformed``: no list, or an index is unknown or repeated.
    """
    scores: dict[int, float] = {}
    for row in rows if isinstance(rows, list) else [rows]:
        fields = row if isinstance(row, dict) else {}
        index, value = fields.get("index"), fields.get(score, "")
        if type(index) is not int or type(value) not in {int, float}:  # True is no number
            raise malformed_error(f"a result without 'index' and {score!r}")
        if not 0 <= index < count or index in scores:
            raise malformed_error(f"index {index} for {count} documents is unknown or repeated")
        try:
            scores[index] = float(value)
        except OverflowError:
            raise malformed_error(f"{score!r} at index {index} is no finite number") from None
    return scores


@dataclass(frozen=True)
class Candidate:
    """One fused document, with its text."""

    id: str
    text: str
    score: float
