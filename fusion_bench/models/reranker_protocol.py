"""The protocol of a reranker: its identity, checks of its replies, truncation of documents.

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

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from operator import add
from pathlib import Path
from typing import Any, Protocol

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import DataError, ProviderError
from fusion_bench.util.files import read_regular
from fusion_bench.util.json_text import malformed_error
from fusion_bench.util.optional_imports import import_optional

#: A score this far outside its space is rounded by the server.
ROUNDING = 1e-6
UNBOUNDED = (-math.inf, math.inf)
#: Least and greatest score of the spaces that have them.
BOUNDS = {"unit": (0.0, 1.0), "log_prob": (-math.inf, 0.0)}


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
    problem = _find_problem(reply, count, identity.space)
    if problem:
        raise ProviderError(f"{identity.label}: {problem}", kind="malformed")
    low, high = BOUNDS.get(identity.space, UNBOUNDED)
    return replace(reply, scores=tuple(min(max(s, low), high) for s in reply.scores))


def _find_problem(reply: object, count: int, space: ScoreSpace) -> str:
    """What is wrong with a reply; empty = nothing."""
    if not isinstance(reply, Reply):
        return f"a Reply is needed, given {reply!r:.80}"
    if len(reply.scores) != count:
        return f"{len(reply.scores)} scores for {count} documents"
    if not set(reply.unread) <= set(range(count)):
        return f"unread positions {reply.unread} of {count} documents"
    if not all(map(_is_finite, reply.scores)):
        return "a score is no finite number"
    low, high = BOUNDS.get(space, UNBOUNDED)
    for score in reply.scores:
        if not low - ROUNDING <= score <= high + ROUNDING:
            return f"score {score} is outside the score space {space!r}: declare the right 'space'"
    return ""


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


#: Scripts written without blanks have about one token per character.
_WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
#: A wide character, up to four others of a word, or a mark.
_TOKEN = re.compile(rf"[{_WIDE}]|[^\W{_WIDE}]{{1,4}}|[^\w\s]")


class Truncation:
    """Truncates texts to a number of tokens.

    Args:
        tokens: Most tokens; None = no limit.
        tokenizer: A ``tokenizer.json`` that counts them. Without it the number is estimated: one
            per four letters of a word, one per punctuation mark, one per Chinese, Japanese or
            Korean character. Most tokenizers count fewer.
    """

    def __init__(self, tokens: int | None, tokenizer: Path | None = None) -> None:
        self.tokens = tokens
        self._path = tokenizer

    @property
    def label(self) -> str:
        """How texts are truncated, as part of a model's identity."""
        return "none" if self.tokens is None else f"{self.tokens} tokens, {self._tokenizer_label}"

    @cached_property
    def _tokenizer_label(self) -> str:
        if self._path is None:
            return "estimated"
        try:
            return f"sha256 {hashlib.sha256(read_regular(self._path)).hexdigest()[:16]}"
        except OSError as error:
            raise DataError(f"{self._path}: cannot be read ({error.strerror})") from None

    @cached_property
    def _loaded_tokenizer(self):  # type: ignore[no-untyped-def] # noqa: ANN202 - tokenizers has no types
        tokenizers = import_optional("tokenizers", extra="local", purpose="counting tokens")
        self._tokenizer_label  # noqa: B018 - raises if the file is missing
        loaded = tokenizers.Tokenizer.from_file(str(self._path))
        loaded.no_truncation()
        loaded.no_padding()
        return loaded

    def __call__(self, text: str) -> str:
        """The text up to its last token that fits."""
        # A token has at least one character.
        if self.tokens is None or len(text) <= self.tokens:
            return text
        if self._path is None:
            ends = [match.end() for match in _TOKEN.finditer(text)]
        else:
            encoding = self._loaded_tokenizer.encode(text, add_special_tokens=False)
            ends = [end for _, end in encoding.offsets]
        return text if len(ends) <= self.tokens else text[: ends[self.tokens - 1]]


def approximate_tokens(text: str) -> int:
    """Estimated number of tokens of a text."""
    return sum(1 for _ in _TOKEN.finditer(text))
