"""Every term of a document's score.

:attr:`ScoreTrace.recomputed_score` adds the terms up again; the tests require it to equal the score
to the last bit, for every method and blend.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.fuse import name_term


@dataclass(frozen=True)
class ScoreTerm:
    """One term of the fused score.

    Attributes:
        label: The source, or the name of another term.
        value: The summand; 0 where it has no effect.
        source: The source it belongs to; None = no single one.
        roles: Roles of that source.
        rank: The document's rank in that source; None = not returned.
        score: Its raw score in that source; None = not returned.
        weight: The source's weight in the fusion.
    """

    label: str
    value: float
    source: str | None = None
    roles: tuple[str, ...] = ()
    rank: int | None = None
    score: float | None = None
    weight: float | None = None

    @property
    def name(self) -> str:
        """Label and source, once."""
        return name_term(self.label, self.source)


@dataclass(frozen=True)
class BlendTrace:
    """The blend of one candidate: retrieval_weight · retrieval + rerank_weight · rerank.

    Attributes:
        reranker: The rerank list.
        raw: The score in the list; None = the list lacks the document.
        rerank: The score on the unit scale.
        rerank_weight: Its weight.
        retrieval: The retrieval term.
        retrieval_weight: Its weight; both are None for a blend that is no such sum.
        rerank_from: How the rerank score came from the raw one, in words.
        retrieval_from: How the retrieval term came from the fused score or rank.
    """

    reranker: str
    raw: float | None
    rerank: float
    rerank_weight: float | None = None
    retrieval: float | None = None
    retrieval_weight: float | None = None
    rerank_formula: str = ""
    retrieval_formula: str = ""


@dataclass(frozen=True)
class ScoreTrace:
    """The score of one document of one query, by term.

    Attributes:
        document: Its id.
        grade: As judged; None = unjudged.
        rank: Final rank, from 1; None = not returned.
        rank_before_cut: Final rank before ``top_k`` cuts the list; None = dropped.
        score: Final score.
        tier: The part of the list it belongs to.
        fused_rank: Rank in the fused list; None = not in it.
        fused_score: Fused score, as shown and blended.
        terms: Terms of the fused score.
        divisor: Divisor of their sum.
        ceiling: Upper limit of the fused score; None = not limited.
        blend: The blend; None where the fused score is final.
    """

    document: str
    grade: int | None
    rank: int | None
    rank_before_cut: int | None
    score: float
    tier: str
    fused_rank: int | None
    fused_score: float
    terms: tuple[ScoreTerm, ...]
    divisor: float
    ceiling: float | None
    blend: BlendTrace | None

    @property
    def recomputed_score(self) -> float:
        """The score, added up again from the terms."""
        if self.blend is not None:
            return sum(self.contributions.values())
        fused = math.fsum(term.value for term in self.terms) / self.divisor
        return fused if self.ceiling is None else min(fused, self.ceiling)

    @property
    def is_cut(self) -> bool:
        """Whether ``top_k`` alone keeps it out of the list."""
        return self.rank_before_cut is not None and self.rank is None

    @property
    def contributions(self) -> dict[str, float]:
        """Summands of the final score by label."""
        blend = self.blend
        if blend is None:
            return self.fused_contributions
        label = f"rerank {blend.reranker}"
        if blend.retrieval is None:
            return {label: self.score}
        retrieval = (blend.retrieval_weight or 0.0) * blend.retrieval
        return {"retrieval": retrieval, label: (blend.rerank_weight or 0.0) * blend.rerank}

    @property
    def fused_contributions(self) -> dict[str, float]:
        """Summands of the fused score by label."""
        sums: dict[str, float] = {}
        for term in self.terms:
            sums[term.name] = sums.get(term.name, 0.0) + term.value / self.divisor
        return sums


@dataclass(frozen=True)
class PolicyTrace:
    """What a policy picked for a query.

    Attributes:
        method: The policy.
        variant: What it changes of the system; empty = nothing.
        changes: The same as text.
        reason: Why: the feature and its value.
    """

    method: str
    variant: Mapping[str, Any]
    changes: str
    reason: str


@dataclass(frozen=True)
class Explanation:
    """Every candidate of one query under one system.

    Attributes:
        system: Its name.
        query: Id of the query.
        query_type: The type whose weights were used; None = no weights by type.
        method: The fusion's name.
        ties: The tie rule.
        top_k: Maximum length of the list; None = no limit.
        traces: Every candidate in the order of the final list, those not returned last.
        query_text: The beginning of the query's text; empty where the dataset has none.
        documents: JSON Lines with the texts of the documents; None where there is no such file.
        stages: The same query under each stage of the system.
        intent: The intent whose numbers were used; None = no numbers by intent.
        switched_off: Source that is off for the query → why.
        policy: What the system's policy picked; None = it has none.
        trial: Which trial of which lists this is; None = every list has one file.
        data_warnings: What speaks against the judge of the grades.
    """

    system: str
    query: str
    query_type: str | None
    method: str
    ties: str
    top_k: int | None
    traces: tuple[ScoreTrace, ...]
    query_text: str = ""
    documents: Path | None = None
    stages: tuple[Explanation, ...] = ()
    intent: str | None = None
    switched_off: Mapping[str, str] = field(default_factory=dict)
    policy: PolicyTrace | None = None
    trial: str | None = None
    data_warnings: tuple[DataWarning, ...] = ()

    def find_trace(self, document: str) -> ScoreTrace | None:
        """The trace of a document; None where no source returned it."""
        return next((trace for trace in self.traces if trace.document == document), None)
