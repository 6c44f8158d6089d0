"""Fusions that learn from judged queries, and never score a query that they learned from."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from pydantic import Field

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.errors import AlignmentError
from fusion_bench.methods.fuse._base import Fusion, ScoreTerms, TermFusion

M = TypeVar("M", bound="FittedFusion")


class FittedFusion(TermFusion):
    """A fusion with the numbers that it learned; made by :meth:`Trainable.fit`.

    Attributes:
        sources: Names of the sources that it learned from.
        fitted_on: Ids of the queries that it learned from.
    """

    reorders: ClassVar[bool] = True  # what is learned of a list need not fall along it

    sources: tuple[str, ...]
    fitted_on: frozenset[str]

    @abstractmethod
    def compute_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The terms of the score, for queries and sources that were checked."""

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The terms of the score.

        Raises:
            AlignmentError: A query that it learned from, or a source that it did not.
        """
        for query in runs.queries:
            if query in self.fitted_on:
                raise AlignmentError(
                    f"{self.method}: query {query!r} is one that it was fitted on: its score would "
                    "be in-sample: score other queries, or fit on other queries"
                )
        for name in runs.sources:
            if name not in self.sources:
                raise AlignmentError(
                    f"{self.method}: it was fitted on {', '.join(self.sources)}, and not on source "
                    f"{name!r}: fit it on all sources that you fuse"
                )
        return self.compute_terms(runs)


class Trainable(Fusion):
    """A fusion whose numbers are learned from judged queries.

    Whoever evaluates it fits it first, out of fold (:meth:`cross_fit`).

    Attributes:
        folds: Each query is scored by a model that learned from the other folds; fewer folds
            where there are fewer groups of queries.
        fold_seed: Another one deals the groups of queries into other folds.
    """

    folds: Annotated[int, Field(ge=2, le=100)] = 5
    fold_seed: int = 0

    @abstractmethod
    def fit(self, runs: AlignedRuns) -> FittedFusion:
        """Learn from every query of the runs.

        Args:
            runs: Judged queries; only sources that take part, as for :meth:`Fusion.fuse`.
        """

    def make_fitted(self, kind: type[M], runs: AlignedRuns, **learned: object) -> M:
        """A fitted fusion with what it learned from these runs."""
        known: dict[str, Any] = {"method": self.method, "sources": runs.sources, **learned}
        return kind(fitted_on=frozenset(runs.queries), **known)

    def fuse(self, runs: AlignedRuns) -> FloatArray:  # noqa: ARG002 - it has nothing to score with
        """Refused: only a fitted fusion has scores.

        Raises:
            AlignmentError: Always.
        """
        raise AlignmentError(
            f"{self.method} is not fitted: it learns from judged queries first: evaluate it on a "
            "dataset, or call its cross_fit"
        )

    def cross_fit(self, runs: AlignedRuns) -> CrossFitted:
        """Fit once without each fold, and once on everything for queries that are not judged.

        Args:
            runs: As for :meth:`fit`.

        Raises:
            AlignmentError: Fewer than two groups of queries, or no relevant document.
        """
        if not is_relevant(runs).any():
            raise AlignmentError(
                f"{self.method} learns from relevant documents, and no source returned one for "
                "these queries: give it a dataset with judgments"
            )
        fold_of_group = deal_folds(runs.groups, self.folds, self.fold_seed, self.method)
        fold = np.array([fold_of_group[group] for group in runs.groups])
        models = [self.fit(runs.subset(fold != k)) for k in range(int(fold.max()) + 1)]
        models.append(self.fit(runs))
        dumps = "\n".join(model.model_dump_json(exclude={"fitted_on"}) for model in models)
        folds = dict(zip(runs.queries, fold.tolist(), strict=True))
        digest = hashlib.sha256(f"{sorted(folds.items())}\n{dumps}".encode()).hexdigest()
        return CrossFitted(
            method=self.method,
            settings=self.model_dump_json(),
            fingerprint=digest,
            models=tuple(models),
            fold_of_query=folds,
        )


class CrossFitted(Fusion):
    """A trained fusion, fitted so that no query is scored by a model that learned from it.

    Attributes:
        settings: The trained method's parameters, as JSON.
        fingerprint: SHA-256 over the models and the folds, which are too long to write out.
        models: The K models, each fitted without one fold; last, one fitted on all queries, for
            queries of no fold.
        fold_of_query: Query id → fold.
    """

    settings: str
    fingerprint: str
    models: tuple[FittedFusion, ...] = Field(exclude=True, repr=False)
    fold_of_query: Mapping[str, int] = Field(exclude=True, repr=False)

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the score by the model that did not learn from the query.

        Raises:
            AlignmentError: A source that the models did not learn from.
        """
        scores: FloatArray = np.empty(len(runs.documents))
        for model, part, rows in self._parts(runs):
            scores[rows] = model.fuse(part)
        return scores

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The terms of each query's model."""
        parts = [(model.score_terms(part), rows) for model, part, rows in self._parts(runs)]
        first = parts[0][0]
        terms = np.zeros((len(first.labels), len(runs.documents)))
        divisor: FloatArray = np.ones(len(runs.documents))
        for part, rows in parts:
            terms[:, rows], divisor[rows] = part.terms, part.divisor
        return ScoreTerms(first.labels, first.sources, terms, divisor)

    @property
    def keeps_single_list(self) -> bool:
        """Where every model does."""
        return all(model.keeps_single_list for model in self.models)

    def _parts(self, runs: AlignedRuns) -> Iterator[tuple[FittedFusion, AlignedRuns, BoolArray]]:
        """A model, the queries that it scores, and their candidates, (N,)."""
        last = len(self.models) - 1
        index = np.array([self.fold_of_query.get(query, last) for query in runs.queries])
        for number in np.unique(index).tolist():
            keep = index == number
            part = runs if keep.all() else runs.subset(keep)
            yield self.models[number], part, keep[runs.query_index]


def is_relevant(runs: AlignedRuns) -> BoolArray:
    """(N,): which candidates are judged relevant, from the dataset's binary relevance on."""
    return runs.judged & (runs.grades >= runs.binary_relevance)


def deal_folds(groups: Sequence[str], folds: int, seed: int, method: str) -> dict[str, int]:
    """Deal groups into folds, in the order of a hash: the order of the queries has no say.

    Args:
        groups: Shape (Q,): the group of each query.
        folds: K; of fewer groups, each is a fold.
        seed: Another one gives other folds.
        method: What is fitted, for the message.

    Returns:
        Group → fold, 0 … K−1; no fold is empty.

    Raises:
        AlignmentError: Fewer than two groups.
    """
    names = set(groups)
    if len(names) < 2:
        raise AlignmentError(
            f"{method} scores a query by what it learns from others: needs judged queries of at "
            f"least 2 groups, given {len(names)}"
        )

    def place(name: str) -> tuple[bytes, str]:
        return hashlib.sha256(f"{seed}\0{name}".encode()).digest(), name

    return {name: i % folds for i, name in enumerate(sorted(names, key=place))}
