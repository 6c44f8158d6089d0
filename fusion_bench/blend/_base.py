"""The contract of a rerank blend, and the steps that every blend shares."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fusion_bench.blend._engine_form import Mixture
from fusion_bench.blend._score_spaces import on_unit_scale
from fusion_bench.config.parameters import Parameter, Params
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import AlignmentError, ConfigError, UnknownNameError

__all__ = ["Blend", "Blended", "Fused", "Mix", "RerankBlend", "blends"]

BoolArray: TypeAlias = NDArray[np.bool_]

#: Documents of a lower tier stand wholly above those of a higher one; DROPPED ones nowhere.
BLENDED, UNSCORED, TAIL, DROPPED = 0, 1, 2, -1


class Fused(NamedTuple):
    """What a blend starts from.

    Attributes:
        scores: Shape (N,): as the fusion reports them; what a blend reads.
        positions: Shape (N,): 1-based fused rank.
        max_possible: Shape (Q,): what no fused score can exceed.
        deciding: Shape (N,): what the fused order was decided on: the scores before any clamp.
    """

    scores: FloatArray
    positions: IntArray
    max_possible: FloatArray
    deciding: FloatArray


class Blended(NamedTuple):
    """What a blend ends with.

    Attributes:
        scores: Shape (N,): final scores; fused ones outside tier 0.
        tiers: Shape (N,): 0 blended, 1 without a rerank score, 2 beyond the depth, -1 dropped.
        deciding: Shape (N,): what decides the order inside a tier: the final scores, but fused
            ones before any clamp.
    """

    scores: FloatArray
    tiers: NDArray[np.int8]
    deciding: FloatArray


class Mix(NamedTuple):
    """Final score = retrieval_weight · retrieval + rerank_weight · rerank score; each (N,)."""

    retrieval: FloatArray
    retrieval_weight: FloatArray
    rerank_weight: FloatArray


class Blend(Method):
    """Turns the fused list and cached rerank scores into the final list.

    Attributes:
        method: Its name.
        formula: What it computes, in one line, for the table of methods.
        source: Where it comes from.
    """

    formula: ClassVar[str]
    source: ClassVar[str]

    method: str

    @property
    def reranker_name(self) -> str | None:
        """The rerank list it reads, if any."""
        return None

    @abstractmethod
    def blend(self, runs: AlignedRuns, fused: Fused, spaces: Mapping[str, ScoreSpace]) -> Blended:
        """Final scores.

        Args:
            runs: The sources that take part, with the rerank lists.
            fused: The fused list.
            spaces: What the scores of each rerank list mean.

        Raises:
            UnknownNameError: The rerank list is not there.
            ConfigError: Its score space is not declared.
            AlignmentError: A candidate without a rerank score under ``missing: error``.
        """

    def compiled(self, depth: int) -> Mixture | None:  # noqa: ARG002 - of those that can
        """The same final scores in a form that the engine can count with; None = it has none.

        Args:
            depth: How many fused ranks to speak of.
        """
        return None

    def space(self) -> tuple[Parameter, ...]:
        """What can be tuned, with paths relative to the blend.

        What a blend costs (``depth``) or drops (``min_score``) is not among it: more of it is
        not a matter of taste, so a search does so only where it is asked to.
        """
        return ()

    def suggestions(self) -> tuple[Params, ...]:
        """Values that its sources name, worth a trial before any search; relative paths."""
        return ()


class RerankBlend(Blend):
    """A blend that reads a rerank list.

    Attributes:
        reranker: Name of the rerank list.
        depth: The top so many of the fused list are candidates for reranking.
        missing: A candidate without a rerank score: ``error``, ``zero`` = rerank score 0,
            ``below`` = keeps its fused order under every scored candidate.
        tail: Documents beyond ``depth``: ``keep`` = fused order, below; ``drop``.
        min_score: Drop candidates whose rerank score, on the unit scale, is below this.
        always_rerank: False = leave alone a query with at most ``skip_limit`` fused documents.
        skip_limit: See ``always_rerank`` (CONV-07-05: the result limit, 10).
    """

    reranker: str
    depth: Annotated[int, Field(ge=1)] = 50
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
        """(N,): the final score of every candidate; what stands elsewhere is not read.

        Args:
            runs: The sources that take part.
            fused: The fused list.
            rerank: Shape (N,): rerank scores on the unit scale; NaN = none.
            candidates: Shape (N,): the documents to blend.
        """

    def mix(
        self,
        runs: AlignedRuns,  # noqa: ARG002 - blends that mix read it
        fused: Fused,  # noqa: ARG002 - as above
        candidates: BoolArray,  # noqa: ARG002 - as above
    ) -> Mix | None:
        """What :meth:`combine` weighs against what; None = no sum of two terms."""
        return None

    def scored(
        self, runs: AlignedRuns, fused: Fused, spaces: Mapping[str, ScoreSpace]
    ) -> tuple[BoolArray, FloatArray, BoolArray]:
        """Candidates for reranking, their scores on the unit scale, and who has none: (N,) each.

        Raises:
            UnknownNameError: The rerank list is not there.
            ConfigError: Its score space is not declared.
            AlignmentError: A candidate without a rerank score under ``missing: error``.
        """
        if self.reranker not in runs.rerankers:
            raise UnknownNameError("reranker", self.reranker, runs.rerankers)
        if self.reranker not in spaces:
            raise ConfigError(
                f"reranker {self.reranker!r} has no score_space: say what its scores mean "
                f"({', '.join(get_args(ScoreSpace))})"
            )
        candidates = self._candidates(runs, fused)
        row = runs.rerankers.index(self.reranker)
        unit = on_unit_scale(runs, row, candidates, spaces[self.reranker])
        unscored = candidates & np.isnan(unit)
        if unscored.any() and self.missing == "error":
            raise self._missing_error(runs, unscored)
        if self.missing == "zero":
            unit = np.where(unscored, 0.0, unit)
            unscored = np.zeros_like(unscored)
        return candidates, unit, unscored

    def blend(self, runs: AlignedRuns, fused: Fused, spaces: Mapping[str, ScoreSpace]) -> Blended:
        """Blend the candidates, keep or drop the rest; see :meth:`Blend.blend`."""
        candidates, unit, unscored = self.scored(runs, fused, spaces)
        blended = candidates & ~unscored
        combined = self.combine(runs, fused, unit, candidates)
        final = np.where(blended, combined, fused.scores)
        tiers = np.full(len(final), TAIL if self.tail == "keep" else DROPPED, dtype=np.int8)
        tiers[self._left_alone(runs, fused)] = TAIL
        tiers[unscored], tiers[blended] = UNSCORED, BLENDED
        if self.min_score is not None:
            with np.errstate(invalid="ignore"):
                tiers[blended & (unit < self.min_score)] = DROPPED
        tiers[fused.positions == 0] = DROPPED
        return Blended(final, tiers, np.where(blended, combined, fused.deciding))

    def _candidates(self, runs: AlignedRuns, fused: Fused) -> BoolArray:
        inside = (fused.positions >= 1) & (fused.positions <= self.depth)
        return np.asarray(inside & ~self._left_alone(runs, fused))

    def _left_alone(self, runs: AlignedRuns, fused: Fused) -> BoolArray:
        """(N,): documents of queries too small to rerank."""
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
            f"{queries} queries inside depth {self.depth} lack one): score them, lower 'depth', "
            "or say 'missing: zero' or 'missing: below'"
        )


blends: MethodRegistry[Blend] = MethodRegistry(
    "blend", "fusion_bench.blend", "fusion_bench.blends", Blend
)
