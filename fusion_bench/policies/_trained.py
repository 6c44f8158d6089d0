"""Policies that learn from judged queries, and never choose for a query that they learned from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from fusion_bench.config.models import StrictModel
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.errors import AlignmentError
from fusion_bench.fuse import deal_folds
from fusion_bench.policies._base import Choice, Policy, Variant
from fusion_bench.policies._features import QueryFeatures


class FittedPolicy(StrictModel):
    """The numbers that a policy learned.

    Attributes:
        fitted_on: Ids of the queries that it learned from.
    """

    fitted_on: frozenset[str]

    @abstractmethod
    def predict_codes(self, matrix: FloatArray) -> IntArray:
        """(Q,): the variant of each query.

        Args:
            matrix: Shape (Q, F): the features.
        """

    def check_queries(self, queries: Sequence[str]) -> None:
        """Refuse queries that it was fitted on.

        Raises:
            AlignmentError: One of them is.
        """
        for query in queries:
            if query in self.fitted_on:
                raise AlignmentError(
                    f"query {query!r} is one that the policy was fitted on: its choice would be "
                    "in-sample: choose for other queries, or fit on other queries"
                )


class TrainablePolicy(Policy):
    """A policy whose numbers are learned; :meth:`cross_fit` does so out of fold.

    Attributes:
        measure: The measure that the choice is to raise, of the fused list.
        folds: Each query's choice is learned from the other folds; fewer folds where there are
            fewer groups of queries.
        fold_seed: Another one deals the groups into other folds.
    """

    measure: str = "nDCG@10"
    folds: Annotated[int, Field(ge=2, le=100)] = 5
    fold_seed: int = 0

    @abstractmethod
    def variants(self, features: QueryFeatures) -> tuple[Variant, ...]:
        """(V,): what it chooses among."""

    @abstractmethod
    def feature_matrix(self, features: QueryFeatures) -> FloatArray:
        """(Q, F): what it chooses by."""

    @abstractmethod
    def fit(self, matrix: FloatArray, values: FloatArray, queries: Sequence[str]) -> FittedPolicy:
        """Learn from some queries.

        Args:
            matrix: Shape (Q, F).
            values: Shape (V, Q): the measure of each variant.
            queries: Their ids, (Q,).
        """

    def choose(self, features: QueryFeatures) -> Choice:  # noqa: ARG002 - it knows nothing yet
        """Refused: only a fitted policy can choose.

        Raises:
            AlignmentError: Always.
        """
        raise AlignmentError(
            f"policy {self.method!r} is not fitted: it learns from judged queries first: evaluate "
            "it on a dataset"
        )

    def cross_fit(
        self, matrix: FloatArray, values: FloatArray, queries: Sequence[str], fold: IntArray
    ) -> tuple[FittedPolicy, ...]:
        """A model without each fold, and last one of everything.

        Args:
            matrix: As for :meth:`fit`.
            values: As for :meth:`fit`.
            queries: As for :meth:`fit`.
            fold: Shape (Q,): 0 … K−1.
        """

        def fit(keep: BoolArray) -> FittedPolicy:
            ids = [query for query, is_kept in zip(queries, keep, strict=True) if is_kept]
            return self.fit(matrix[keep], values[:, keep], ids)

        masks = [fold != k for k in range(int(fold.max()) + 1)]
        return tuple(fit(keep) for keep in [*masks, np.ones(len(fold), dtype=bool)])

    def deal_queries(self, queries: Sequence[str], groups: Sequence[str]) -> dict[str, int]:
        """Query id → fold; groups stay whole.

        Raises:
            AlignmentError: Fewer than two groups.
        """
        fold = deal_folds(groups, self.folds, self.fold_seed, self.method)
        return {query: fold[group] for query, group in zip(queries, groups, strict=True)}


class CrossFittedPolicy(Policy):
    """A trained policy, fitted so that no query's choice learned from that query.

    Attributes:
        settings: The policy that was fitted.
        choices: What it chooses among, (V,).
        models: The K models, each fitted without one fold; last, one fitted on all queries.
        fold_of_query: Query id → fold.
    """

    settings: TrainablePolicy = Field(exclude=True)
    choices: tuple[Variant, ...] = Field(exclude=True, repr=False)
    models: tuple[FittedPolicy, ...] = Field(exclude=True, repr=False)
    fold_of_query: Mapping[str, int] = Field(exclude=True, repr=False)

    def choose(self, features: QueryFeatures) -> Choice:
        """Each query's variant by the model that did not learn from it."""
        matrix, queries = self.settings.feature_matrix(features), features.runs.queries
        last = len(self.models) - 1
        index = np.array([self.fold_of_query.get(query, last) for query in queries])
        codes = np.zeros(len(queries), dtype=np.int64)
        for number in np.unique(index).tolist():
            rows = np.flatnonzero(index == number)
            model = self.models[number]
            model.check_queries([queries[row] for row in rows.tolist()])
            codes[rows] = model.predict_codes(matrix[rows])
        return Choice(codes, self.choices)

    def explain_choice(self, features: QueryFeatures) -> str:
        """Which model chose."""
        [query] = features.runs.queries
        if query not in self.fold_of_query:
            return "predicted to be best by the model that learned from every judged query"
        return "predicted to be best by a model that did not learn from this query"
