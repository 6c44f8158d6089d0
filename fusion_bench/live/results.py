"""What the live pipeline returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fusion_bench.errors import FailureKind
from fusion_bench.evaluation.crag.verdicts import CragVerdict


@dataclass(frozen=True, slots=True)
class SourceHit:
    """Where a document came from.

    Attributes:
        list: Name of the source.
        rank: Its rank there, from 1.
        score: Its score there.
        weight: The source's weight in the fusion, for this query.
    """

    list: str
    rank: int
    score: float
    weight: float


@dataclass(frozen=True, slots=True)
class LiveDocument:
    """One document of the final list.

    Attributes:
        id: Its id.
        score: Its final score: blended, or the fused one where it was not reranked.
        fused_score: Its fused score.
        rerank_score: Its rerank score on the unit scale; None = it was not scored.
        sources: The lists that returned it and take part, in the system's order.
        text: Its text, of the first list that has one; None = no list has.
        metadata: Of all lists in the order that the caller gave them; later values win.
    """

    id: str
    score: float
    fused_score: float
    rerank_score: float | None
    sources: tuple[SourceHit, ...]
    text: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LiveResult:
    """The answer to one query.

    Attributes:
        documents: Best first.
        provider: ``provider/model`` that scored; the name of the rerank list whose scores were
            handed over; or ``fused order``.
        degraded: Why the first provider did not score, or which source failed; empty if all went
            well.
        failures: ``provider/model`` of each provider that failed, and how, in order.
        source_failures: Source whose retriever failed → what happened.
        skipped: Whether there were too few candidates to rerank.
        switched_off: Source that was off for this query → why.
        query_type: The type whose settings applied; None = the system has none by type.
        intent: The intent whose settings applied; None = the system has none by intent.
        rerank_ms: Milliseconds of the reranking.
        total_ms: Milliseconds of the whole query, with what had passed before.
        crag: CRAG's verdict on the list, where the pipeline has ``crag`` and the scores of the
            rerank list mean the same for every query; None where nothing was reranked, or no score
            could be read.
        crag_unknown: Whether the pipeline has ``crag`` and CRAG cannot tell.
        v2_enabled: What ``RAG_FUSION_V2_ENABLED`` said when the pipeline was made; false =
            ``rrf_v2`` and ``position_aware`` run as ``rrf`` and ``replace``.
    """

    documents: tuple[LiveDocument, ...]
    provider: str
    degraded: str = ""
    failures: tuple[tuple[str, FailureKind], ...] = ()
    source_failures: Mapping[str, str] = field(default_factory=dict)
    skipped: bool = False
    switched_off: Mapping[str, str] = field(default_factory=dict)
    query_type: str | None = None
    intent: str | None = None
    rerank_ms: float = 0.0
    total_ms: float = 0.0
    crag: CragVerdict | None = None
    crag_unknown: bool = False
    v2_enabled: bool = True

    @property
    def ranked(self) -> tuple[tuple[str, float], ...]:
        """Document and final score, best first."""
        return tuple((document.id, document.score) for document in self.documents)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON; metadata stay as they were handed over."""
        return asdict(self)
