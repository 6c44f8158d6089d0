"""The contract of a rerank blend."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fusion_bench.config.parameters import Parameter
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.records import ScoreSpace

#: Documents of a lower tier rank above all those of a higher one; DROPPED ones are not returned.
BLENDED, UNSCORED, TAIL, DROPPED = 0, 1, 2, -1


class Fused(NamedTuple):
    """What a blend starts from.

    Attributes:
        scores: Shape (N,): the fusion's displayed scores, which a blend reads.
        positions: Shape (N,): 1-based fused rank.
        max_possible: Shape (Q,): what no fused score can exceed.
        sort_scores: Shape (N,): the scores that decided the fused order, before any clamp.
    """

    scores: FloatArray
    positions: IntArray
    max_possible: FloatArray
    sort_scores: FloatArray


class Blended(NamedTuple):
    """What a blend ends with.

    Attributes:
        scores: Shape (N,): final scores; fused ones outside tier 0.
        tiers: Shape (N,): 0 blended, 1 without a rerank score, 2 beyond the depth, -1 dropped.
        sort_scores: Shape (N,): what decides the order inside a tier: the final scores, but fused
            ones before any clamp.
    """

    scores: FloatArray
    tiers: NDArray[np.int8]
    sort_scores: FloatArray


class BlendTerms(NamedTuple):
    """Final score = retrieval_weight · retrieval + rerank_weight · rerank score; each (N,)."""

    retrieval: FloatArray
    retrieval_weight: FloatArray
    rerank_weight: FloatArray


@dataclass(frozen=True, eq=False)
class BlendWeights:
    """A blend in the form that the batch engine evaluates: a·retrieval + b·rerank, by fused rank.

    Attributes:
        retrieval: Name of the retrieval term (see ``RetrievalBlend``); None = there is none.
        retrieval_weights: (D,): a at each fused rank from 1; 0 where there is no retrieval term.
        rerank_weights: (D,): b.
    """

    retrieval: str | None
    retrieval_weights: FloatArray
    rerank_weights: FloatArray


class Blend(Method):
    """Turns the fused list and cached rerank scores into the final list.

    A blend needs ``blend`` alone. One that reads a rerank list derives from ``RerankBlend`` and
    needs ``combine``; one that weighs a rerank score against a retrieval term derives from
    ``RetrievalBlend`` and needs ``weights_at``::

        @blends.register
        class Half(RetrievalBlend):
            \"\"\"``half``: (retrieval + rerank) / 2.\"\"\"

            method: str = "half"

            def weights_at(self, ranks: IntArray) -> tuple[FloatArray, FloatArray]:
                return np.full(len(ranks), 0.5), np.full(len(ranks), 0.5)
    """

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

    def engine_form(self, depth: int) -> BlendWeights | None:  # noqa: ARG002 - of some
        """The same final scores in a form that the batch engine evaluates; None = it has none.

        Args:
            depth: The number of fused ranks to state weights for.
        """
        return None

    def space(self) -> tuple[Parameter, ...]:
        """What can be tuned, with paths relative to the blend.

        ``depth``, which costs money, and ``min_score``, which drops documents, are tuned only
        where the experiment lists them.
        """
        return ()


blends: MethodRegistry[Blend] = MethodRegistry(
    "blend", "fusion_bench.blend", "fusion_bench.blends", Blend
)
