"""Reciprocal rank fusion, v1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.fuse._base import Scales, WeightedFusion, fusions
from fusion_bench.fuse._engine_form import RankSum
from fusion_bench.fuse._score_terms import Parts

__all__ = ["RRF"]


@fusions.register
class RRF(WeightedFusion):
    """``rrf``: Σ_s w_s / (k + r_s), over the sources that returned the document.

    Source: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods", SIGIR 2009; weights as in CONV-07-05.

    Attributes:
        k: Flattens the difference between neighbouring ranks.
        normalize: ``none``; ``max_possible`` = divide by the score of a document that is first
            everywhere; ``three_lists`` = divide by 3/(k+1) whatever the number of lists and clamp
            to 1, the order being decided before the clamp (CONV-07-05 ``normalizeScore``).
    """

    formula: ClassVar[str] = "Σ w/(k + rank)"
    source: ClassVar[str] = "Cormack, Clarke, Büttcher 2009; CONV-07-05"

    method: Literal["rrf"] = "rrf"
    k: Annotated[float, Field(ge=0, le=1000)] = 60
    normalize: Literal["none", "max_possible", "three_lists"] = "none"

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """k, evenly by its logarithm, and the weights."""
        return (integer("k", 1, 1000, log=True), *super().space(sources))

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the sum of the terms, divided as ``normalize`` says, not clamped."""
        return sum_terms(self.terms(runs)) / self._divisor(runs)

    def terms(self, runs: AlignedRuns) -> FloatArray:
        """(T, N): what is summed; 0 where a source did not return the document."""
        return self._reciprocals(runs, runs.ranks)

    def parts(self, runs: AlignedRuns) -> Parts:
        """A term a source, then what a version adds."""
        terms = self.terms(runs)
        more = len(terms) - len(runs.sources)
        owners = (*range(len(runs.sources)), *self._owners(runs, more))
        divisor = np.full(terms.shape[1], self._divisor(runs))
        return Parts((*runs.sources, *("bonus",) * more), owners, terms, divisor)

    def _owners(self, runs: AlignedRuns, more: int) -> tuple[int | None, ...]:  # noqa: ARG002
        """Whose the further terms are; None = of no single source."""
        return (None,) * more

    def _reciprocals(self, runs: AlignedRuns, ranks: IntArray) -> FloatArray:
        """(S, n): what each source adds at each of these ranks, (S, n) too; 0 at rank 0."""
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        out: FloatArray = np.zeros(ranks.shape)
        np.divide(weights, self.k + ranks, out=out, where=ranks > 0)
        return out

    def compiled(self, runs: AlignedRuns) -> RankSum:
        """The terms at every rank there is."""
        columns, tables = self._tables(runs, np.arange(runs.deepest + 1))
        ceiling = 1.0 if self.normalize == "three_lists" else np.inf
        return RankSum(columns, tables, self._divisor(runs), ceiling)

    def _tables(
        self, runs: AlignedRuns, ranks: IntArray
    ) -> tuple[tuple[tuple[int, ...], ...], FloatArray]:
        """The sources that each term looks at, and (C, n) the term at each of these ranks."""
        sources = len(runs.sources)
        return tuple((s,) for s in range(sources)), self._reciprocals(
            runs, np.tile(ranks, (sources, 1))
        )

    def reported(self, scores: FloatArray) -> FloatArray:
        """(N,): clamped to 1 under ``three_lists``."""
        return np.minimum(scores, 1.0) if self.normalize == "three_lists" else scores

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the score of a document that every source puts first."""
        top = float(self.reported(np.array([self._first(runs) / self._divisor(runs)]))[0])
        return np.full(len(runs.queries), top)

    @property
    def scales(self) -> Scales:
        """Alike; not where the weights are divided out; otherwise where a clamp bends the scale."""
        if not self.scale_free or self.normalize == "three_lists":
            return "otherwise"
        return "not" if self.normalize == "max_possible" else "alike"

    def _divisor(self, runs: AlignedRuns) -> float:
        if self.normalize == "max_possible":
            return self._first(runs)
        return 3 / (self.k + 1) if self.normalize == "three_lists" else 1.0

    def _first(self, runs: AlignedRuns) -> float:
        """Undivided score of a document that is first everywhere."""
        return float(sum_terms(self._first_terms(runs)))

    def _first_terms(self, runs: AlignedRuns) -> FloatArray:
        """(T,): what is summed for a document that is first everywhere."""
        return self.source_weights(runs.sources, runs.roles) / (self.k + 1)
