"""Haystack: the modes of ``DocumentJoiner``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    find_call,
    parse_python,
    read_windows,
    refuse_unreadable,
    weights_by_source,
    write_windows,
)
from fusion_bench.engines.dialects._sums import NormalizedWeights, ReciprocalRanks, ScaledScoreSum
from fusion_bench.engines.dialects._translation import Draft, EngineFusion, name_weights
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion, WeightedFusion
from fusion_bench.methods.fuse.comb import CombMax
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.methods.normalize import Normalizer, ScoreLists

FILE = "pipeline.py"
#: Positions count from 0, so that it is 60 for ranks from 1.
CONSTANT = 61


class ThreeSigma(Normalizer):
    """(x − (mean − 3·sd)) / (6·sd), population sd, not clipped; 0 for equal scores."""

    method: str = "haystack distribution_based_rank_fusion"
    constant: Annotated[float, Field(ge=0, le=1, multiple_of=0.5)] = 0

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the mean 0.5."""
        size = lists.list_length()
        mean = lists.list_sum(lists.scores) / size
        sd = np.sqrt(lists.list_sum((lists.scores - mean) ** 2) / size)
        spread = lists.list_maximum() > lists.list_minimum()
        return self.divide_or_constant(lists.scores - (mean - 3 * sd), 6 * sd, spread)


class Concatenate(EngineFusion):
    """``concatenate``: the greatest score of any list, as it is; weights are ignored.

    A score of 0 counts as no score, so that a negative one of another list is kept instead.
    """

    formula: ClassVar[str] = "max score"
    source: ClassVar[str] = "Haystack, components/joiners/document_joiner.py"

    method: str = "concatenate"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the greatest score that is not 0; 0 where all are."""
        return _greatest(runs.scores)


class DistributionBased(EngineFusion):
    """``distribution_based_rank_fusion``: the greatest score by mean ± 3·sd; no weights.

    Other engines add these scores; here the list in which the document does best decides alone.
    """

    formula: ClassVar[str] = "max (x − (mean − 3·sd))/(6·sd)"
    source: ClassVar[str] = "Haystack, components/joiners/document_joiner.py"

    method: str = "distribution_based_rank_fusion"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the greatest scaled score that is not 0; 0 where all are."""
        return _greatest(ThreeSigma().normalize_scores(runs))


def _greatest(scores: FloatArray) -> FloatArray:
    """(N,): of (S, N) scores, those that are NaN or 0 left out; 0 where none is left."""
    best = np.max(np.where(np.isnan(scores) | (scores == 0), -np.inf, scores), axis=0)
    return np.where(np.isinf(best), 0.0, best)


class Merge(ScaledScoreSum, NormalizedWeights):
    """``merge``: Σ_s w_s·score, the weights adding up to 1."""

    formula: ClassVar[str] = "Σ w·score / Σ w"
    source: ClassVar[str] = "Haystack, components/joiners/document_joiner.py"

    method: str = "merge"

    def scaled_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the scores as they are."""
        return runs.scores

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion:
        """Our weighted mean of raw scores with 0 for missing ones."""
        weights = self.source_weights(sources, roles).tolist()
        return WeightedScore(missing="zero", weights=dict(zip(sources, weights, strict=True)))


class ReciprocalRankFusion(ReciprocalRanks, NormalizedWeights):
    """``reciprocal_rank_fusion``: 61·Σ_s w_s / (61 + position), positions from 0.

    The weights add up to 1, so that a document which is first in every list has the score 1.
    """

    formula: ClassVar[str] = "61·Σ w/(61 + position) / Σ w"
    source: ClassVar[str] = "Haystack, components/joiners/document_joiner.py"

    method: str = "reciprocal_rank_fusion"

    @property
    def constant(self) -> float:
        """60, for ranks that count from 1."""
        return CONSTANT - 1

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term of a list of this weight."""
        return CONSTANT * super().term_at(ranks, weight)


@dialects.register
class Haystack(Dialect):
    """Haystack 2.20."""

    name = "haystack"
    title = "Haystack"
    version = "2.20"
    source = "https://docs.haystack.deepset.ai/docs/documentjoiner"
    methods = (Concatenate, Merge, ReciprocalRankFusion, DistributionBased)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10}  # top_k of the usual retrievers
    rank_base = 0
    precision = "float64"
    ignores = (
        "concatenate and distribution_based_rank_fusion accept weights and ignore them.",
        "k of reciprocal_rank_fusion cannot be set.",
        "A bonus for top ranks cannot be said.",
    )

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``reciprocal_rank_fusion`` for reciprocal ranks, ``merge`` for sums of raw scores."""
        draft = Draft(cls, system, roles)
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            if set(ranks.k.values()) != {CONSTANT - 1}:
                draft.lose("k: fixed at 60")
            weights = name_weights(ranks.weights)
            fusion = {"method": "reciprocal_rank_fusion", "weights": weights}
        elif (mean := draft.find_score_sum()) is not None:
            if mean.normalize.method != "none":
                return draft.refuse(f"normalize: {cls.title} has no {mean.normalize.method!r}")
            fusion = {"method": "merge", "weights": name_weights(draft.weights)}
        elif isinstance(draft.fusion, CombMax) and draft.fusion.normalize.method == "none":
            draft.lose("score: 0 counts as no score, so that a negative one is kept instead")
            fusion = {"method": "concatenate"}
        else:
            return draft.refuse_fusion()
        return draft.finish(fusion, **draft.choose_windows(by_source=True))

    @classmethod
    def write(cls, system: System) -> Configuration:
        """Python that joins the lists."""
        check_writable(cls, system)
        weights = [*weights_by_source(system).values()]
        code = f"""\
from haystack.components.joiners import DocumentJoiner

{write_windows(system)}

def retrieve(name: str, query: str, top_k: int):
    raise NotImplementedError("return the documents of this list")


joiner = DocumentJoiner(
    join_mode={system.fusion.method!r},
    weights={weights!r},
    top_k=TOP_K,
)
lists = [retrieve(name, "QUERY", top_k) for name, top_k in WINDOWS.items()]
documents = joiner.run(documents=lists)["documents"]
"""
        return Configuration(
            {FILE: code},
            (
                "Fill in retrieve, for example by RETRIEVERS[name].run(...)['documents'].",
                "Weights go by the order of the lists. In a Pipeline, check in which order the "
                "lists reach the joiner.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from Python that joins the lists.

        Raises:
            ConfigError: It is none.
        """
        tree = parse_python(files, FILE)
        with refuse_unreadable(FILE, cls.title):
            windows = read_windows(tree)
            _, arguments = find_call(tree, "DocumentJoiner")
            method = arguments.get("join_mode", "concatenate")
            fusion: dict[str, Any] = {"method": method}
            has_weights = issubclass(cls.fusions().find_plugin(method), WeightedFusion)
            if has_weights and (weights := arguments.get("weights")):
                fusion["weights"] = dict(zip(windows["runs"], weights, strict=True))
        return {"dialect": cls.name, "fusion": fusion, **windows}
