"""What is kept of a system to compare its failures with those of another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.evaluation.details.relevant_documents import RelevantDocuments, take_relevant
from fusion_bench.explain.diagnose_failures import LAST, FailureKind, Failures, StageRanks


@dataclass(frozen=True, eq=False)
class DiagnosedSystem:
    """The failures of one system, and where it has the M relevant documents.

    Attributes:
        name: Its name.
        failures: By kind.
        not_applicable: Why a kind cannot occur, by kind.
        fused: Shape (M,): fused rank; :data:`LAST` = not in the fused list.
        final: Shape (M,): final rank before ``top_k`` cuts; :data:`LAST` = dropped.
        returned: Shape (M,): final rank; :data:`LAST` = not returned.
        has_question: Shape (Q,): whether the system reads a list of role question.
    """

    name: str
    failures: Mapping[FailureKind, Failures]
    not_applicable: Mapping[FailureKind, str]
    fused: IntArray
    final: IntArray
    returned: IntArray
    has_question: BoolArray

    @classmethod
    def from_stages(
        cls,
        name: str,
        stages: StageRanks,
        relevant: RelevantDocuments,
        failures: Mapping[FailureKind, Failures],
        not_applicable: Mapping[FailureKind, str],
    ) -> DiagnosedSystem:
        """Keep the ranks of the relevant documents only."""
        fused, final, returned = (
            np.where(ranks == 0, LAST, ranks)
            for stage in (stages.fused, stages.final, stages.returned)
            for ranks in [take_relevant(stage, relevant)]
        )
        return cls(name, failures, not_applicable, fused, final, returned, stages.has_question)

    def comparable_queries(self, kind: FailureKind) -> BoolArray:
        """(Q,): the queries on which failures of a kind can be counted.

        A system without a reranker buries nothing: it counts 0.
        """
        if kind == "dilution":
            return self.has_question
        is_known = kind == "burial" or kind not in self.not_applicable
        return np.full(len(self.has_question), is_known)


@dataclass(frozen=True, eq=False)
class Scope:
    """What is the same for every system of a collection.

    Attributes:
        queries: Query ids, (Q,).
        groups: Shape (Q,): codes of the groups.
        relevant: The M relevant documents.
        alpha: 1 − coverage of the intervals.
        top: The number of failures to list.
    """

    queries: tuple[str, ...]
    groups: IntArray
    relevant: RelevantDocuments
    alpha: float
    top: int

    def count_by_query(self, is_counted: BoolArray) -> FloatArray:
        """(Q,): how many of the relevant documents count, for each query."""
        counts = np.bincount(self.relevant.query[is_counted], minlength=len(self.queries))
        return counts.astype(np.float64)
