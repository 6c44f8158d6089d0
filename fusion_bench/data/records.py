"""What is known of a query, a document and the numbers of a rerank list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

#: What the numbers of a rerank list mean; ``order`` = only which is greater.
ScoreSpace: TypeAlias = Literal["unit", "logit", "log_prob", "unbounded", "order"]


@dataclass(frozen=True, slots=True)
class Query:
    """What is known of one query beside its judgements; every field but the id may be absent."""

    id: str
    text: str | None = None
    type: str | None = None
    intent: str | None = None
    confidence: float | None = None
    group: str | None = None
    split: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One document; only explanations and judging read the text."""

    id: str
    text: str
