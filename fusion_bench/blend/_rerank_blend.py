"""What every blend with a reranker shares: candidates, missing scores, tail, thresholds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Literal, get_args

import numpy as np
from pydantic import Field

from fusion_bench.blend._base import (
    BLENDED,
    DROPPED,
    TAIL,
    UNSCORED,
    Blend,
    Blended,
    BlendTerms,
    Fused,
)
from fusion_bench.blend._score_spaces import on_unit_scale
from fusion_bench.config.limits import Rank
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import AlignmentError, ConfigError, UnknownNameError


class RerankBlend(Blend):
    """A blend that reads a rerank list.

    Attributes:
        reranker: Name of the rerank list.
        depth: Number of top fused documents that are candidates for reranking.
        missing: A candidate without a rerank score: ``error``, ``zero`` = rerank score 0,
            ``below`` = keeps its fused order under every scored candidate.
        tail: Documents beyond ``depth``: ``keep`` = fused order, below; ``drop``.
        min_score: Drop candidates whose rerank score, on the unit scale, is below this.
        always_rerank: False = do not rerank a query with at most ``skip_limit`` fused documents.
        skip_limit: See ``always_rerank``; by default a usual result limit (CONV-07-05).
    """

    reranker: str
    depth: Rank = 50
    missing: Literal["error", "zero", "below"] = "error"
    tail: Literal["keep", "drop"] = "keep"
    min_score: float | None = None
    always_rerank: bool = True
    skip_limit: Annotated[int, Field(ge=0)] = 10

    @property
    def reranker_name(self) -> str | None:
        """The rerank list it reads."""
        return self.reranker

    @abstractmethod
    def combine(
        self, runs: AlignedRuns, fused: Fused, rerank: FloatArray, candidates: BoolArray
    ) -> FloatArray:
        """(N,): the final score of every candidate; other values are not read.

        Args:
            runs: The sources that take part.
            fused: The fused list.
            rerank: Shape (N,): rerank scores on the unit scale; NaN = none.
            candidates: Shape (N,): the documents to blend.
        """

    def blend_terms(
        self,
        runs: AlignedRuns,  # noqa: ARG002 - sums of two terms read it
        fused: Fused,  # noqa: ARG002 - as above
        candidates: BoolArray,  # noqa: ARG002 - as above
    ) -> BlendTerms | None:
        """The two terms whose sum :meth:`combine` is; None = it is no such sum."""
        return None

    def score_candidates(
        self, runs: AlignedRuns, fused: Fused, spaces: Mapping[str, ScoreSpace]
    ) -> tuple[BoolArray, FloatArray, BoolArray]:
        """Candidates for reranking, their scores on the unit scale, those without one: (N,) each.

        Raises:
            UnknownNameError: The rerank list is not there.
            ConfigError: Its score space is not declared.
            AlignmentError: A candidate without a rerank score under ``missing: error``.
        """
        if self.reranker not in runs.rerankers:
            raise UnknownNameError("reranker", self.reranker, runs.rerankers)
        if self.reranker not in spaces:
            raise ConfigError(
                f"reranker {self.reranker!r} has no score_space: declare what its scores mean "
                f"({', '.join(get_args(ScoreSpace))}), with "
                f"score_spaces={{{self.reranker!r}: …}} in Python, "
                "with score_space in dataset.yaml otherwise"
            )
        candidates = self.select_candidates(runs, fused)
        row = runs.rerankers.index(self.reranker)
        unit = on_unit_scale(runs, row, candidates, spaces[self.reranker])
        unscored = candidates & np.isnan(unit)
        if unscored.any() and self.missing == "error":
            raise self._missing_error(runs, unscored)
        if self.missing == "zero":
            unit = np.where(unscored, 0.0, unit)
            unscored = np.zeros_like(unscored)
        return candidates, unit, unscored

    def select_candidates(self, runs: AlignedRuns, fused: Fused) -> BoolArray:
        """(N,): the documents that a rerank score is needed of."""
        inside = (fused.positions >= 1) & (fused.positions <= self.depth)
        return np.asarray(inside & ~self.is_skipped(runs, fused))

    def blend(self, runs: AlignedRuns, fused: Fused, spaces: Mapping[str, ScoreSpace]) -> Blended:
        """Blend the candidates, keep or drop the rest; see :meth:`Blend.blend`."""
        candidates, unit, unscored = self.score_candidates(runs, fused, spaces)
        blended = candidates & ~unscored
        combined = self.combine(runs, fused, unit, candidates)
        final = np.where(blended, combined, fused.scores)
        tiers = np.full(len(final), TAIL if self.tail == "keep" else DROPPED, dtype=np.int8)
        tiers[self.is_skipped(runs, fused)] = TAIL
        tiers[unscored], tiers[blended] = UNSCORED, BLENDED
        if self.min_score is not None:
            with np.errstate(invalid="ignore"):
                tiers[blended & (unit < self.min_score)] = DROPPED
        tiers[fused.positions == 0] = DROPPED
        return Blended(final, tiers, np.where(blended, combined, fused.sort_scores))

    def is_skipped(self, runs: AlignedRuns, fused: Fused) -> BoolArray:
        """(N,): documents of queries with too few of them to rerank."""
        if self.always_rerank:
            return np.zeros(len(fused.positions), dtype=bool)
        sizes = np.bincount(
            runs.query_index, weights=fused.positions > 0, minlength=len(runs.queries)
        )
        return np.asarray((sizes <= self.skip_limit)[runs.query_index])

    def _missing_error(self, runs: AlignedRuns, unscored: BoolArray) -> AlignmentError:
        first = int(np.flatnonzero(unscored)[0])
        queries = len(np.unique(runs.query_index[unscored]))
        return AlignmentError(
            f"reranker {self.reranker!r} has no score for document "
            f"{runs.vocabulary[runs.documents[first]]!r} of query "
            f"{runs.queries[runs.query_index[first]]!r} ({int(unscored.sum())} candidates of "
            f"{queries} queries within depth {self.depth} have none): score them, lower 'depth', "
            "or set 'missing: zero' or 'missing: below'"
        )
