"""LambdaMART: boosted trees over ranks, scores and agreement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, integer, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.fuse._base import ScoreTerms, fusions
from fusion_bench.fuse._features import candidate_features
from fusion_bench.fuse._trained import FittedFusion, Trainable
from fusion_bench.util.optional_imports import import_optional

#: The same trees on every machine and in every run, whatever the number of processors.
DETERMINISTIC: Final = {
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}
#: Greater grades gain as much as this one: 2^grade − 1 must stay finite.
GREATEST_GRADE: Final = 30


@fusions.register
class LambdaMART(Trainable):
    """``lambdamart``: boosted regression trees that order the candidates for nDCG.

    Features are those of ``logistic_regression``; the grades are the dataset's, an unjudged
    document has 0. LightGBM fits the trees, in one thread and from a fixed seed.

    Source: Burges, "From RankNet to LambdaRank to LambdaMART: an overview", Microsoft Research
    MSR-TR-2010-82; Ke et al., "LightGBM", NeurIPS 2017. Needs the extra ``learned``.

    Attributes:
        trees: How many.
        leaves: Most leaves of a tree.
        learning_rate: How much each tree adds.
        least_leaf: Fewest training candidates in a leaf.
        seed: Of LightGBM.
    """

    formula: ClassVar[str] = "Σ trees(features), boosted for nDCG"
    source: ClassVar[str] = "Burges 2010; Ke et al. 2017 (LightGBM)"

    method: str = "lambdamart"
    trees: Annotated[int, Field(ge=1, le=10_000)] = 100
    leaves: Annotated[int, Field(ge=2, le=1024)] = 15
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 0.05
    least_leaf: Annotated[int, Field(ge=1)] = 50
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - see the base
        """The number and the size of the trees, and how much each adds."""
        return (
            integer("trees", 20, 300, log=True),
            integer("leaves", 4, 63, log=True),
            real("learning_rate", 0.01, 0.2, log=True),
            integer("least_leaf", 5, 500, log=True),
        )

    def fit(self, runs: AlignedRuns) -> FittedLambdaMART:
        """Grow the trees.

        Raises:
            MissingExtraError: LightGBM is not installed.
        """
        library = _import_lightgbm()
        features = candidate_features(runs, runs.sources)
        sizes = np.diff(runs.offsets)
        data = library.Dataset(
            features.values.T,
            label=np.clip(runs.grades, 0, GREATEST_GRADE),
            group=sizes[sizes > 0],
            params={"verbosity": -1, "min_data_in_bin": 1},
        )
        params = {
            "objective": "lambdarank",
            "num_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.least_leaf,
            "seed": self.seed,
            **DETERMINISTIC,
        }
        booster = library.train(params, data, num_boost_round=self.trees)
        return FittedLambdaMART(
            method=self.method,
            sources=runs.sources,
            fitted_on=frozenset(runs.queries),
            model=booster.model_to_string(),
        )


class FittedLambdaMART(FittedFusion):
    """``lambdamart`` with its trees.

    Attributes:
        model: The trees, as LightGBM writes them.
    """

    method: str
    model: str

    def compute_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """One term: the sum over all trees."""
        features = candidate_features(runs, self.sources)
        scores: FloatArray = np.zeros(len(runs.documents))
        if len(scores):
            scores[:] = _load_booster(self.model).predict(features.values.T, num_threads=1)
        return ScoreTerms(("trees",), (None,), scores[None], np.ones(len(scores)))


@lru_cache(maxsize=32)
def _load_booster(model: str) -> Any:  # noqa: ANN401 - lightgbm ships no types
    return _import_lightgbm().Booster(model_str=model)


def _import_lightgbm() -> Any:  # noqa: ANN401 - a module
    return import_optional("lightgbm", extra="learned", purpose="lambdamart")
