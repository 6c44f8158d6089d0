"""The contract of a normalizer, and the lists it works on."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, SerializeAsAny

from fusion_bench.config.parameters import Parameter
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.ordering import FloatArray, IntArray, make_readonly, sum_terms
from fusion_bench.errors import AlignmentError

#: Greater scores cannot be weighed and added without an overflow.
HUGE = 1e300
#: Lists that would fill less than one part in so many of a table are summed one by one.
PADDING = 4


@dataclass(frozen=True, eq=False)
class ScoreLists:
    """One source's ranked lists over all queries, end to end; a query with an empty list has none.

    Attributes:
        runs: The aligned runs that hold them.
        source: Row of the source.
        rows: Shape (n,): the candidates that the source returned.
        scores: Shape (n,): x.
        lengths: Shape (L,): how many documents each of the L lists holds.
    """

    runs: AlignedRuns
    source: int
    rows: IntArray
    scores: FloatArray
    lengths: IntArray

    @property
    def name(self) -> str:
        """The source."""
        return self.runs.sources[self.source]

    @property
    def roles(self) -> frozenset[str]:
        """Its roles."""
        return self.runs.roles[self.source]

    @property
    def ranks(self) -> IntArray:
        """(n,): r."""
        return np.asarray(self.runs.ranks[self.source][self.rows])

    @cached_property
    def starts(self) -> IntArray:
        """(L,): where each list begins."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def owner(self) -> IntArray:
        """(n,): the list each row belongs to."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def pool(self) -> IntArray:
        """(n,): |C|, the size of the query's candidate union."""
        return np.diff(self.runs.offsets)[self.runs.query_index[self.rows]]

    def list_minimum(self) -> FloatArray:
        """(n,): the least score of the row's list."""
        return np.repeat(np.minimum.reduceat(self.scores, self.starts), self.lengths)

    def list_maximum(self) -> FloatArray:
        """(n,): the greatest score of the row's list."""
        return np.repeat(np.maximum.reduceat(self.scores, self.starts), self.lengths)

    def list_length(self) -> IntArray:
        """(n,): n, how many documents the row's list holds."""
        return np.repeat(self.lengths, self.lengths)

    def list_median(self) -> FloatArray:
        """(n,): the median score of the row's list."""
        parts = np.split(self.scores, self.starts[1:])
        return np.array([np.median(part) for part in parts])[self.owner]

    def list_deviation(self) -> FloatArray:
        """(n,): the population standard deviation of the row's list."""
        size = self.list_length()
        above = self.scores - self.list_sum(self.scores) / size
        return np.asarray(np.sqrt(self.list_sum(above**2) / size))

    def list_sum(self, values: FloatArray) -> FloatArray:
        """(n,): correctly rounded sum of ``values`` over the row's list, hence free of order."""
        lengths = np.diff(self.starts, append=len(values))
        if lengths.max() * len(lengths) > PADDING * len(values):
            parts = np.split(values, self.starts[1:])
            return np.array([math.fsum(part.tolist()) for part in parts])[self.owner]
        table = np.zeros((lengths.max(), len(lengths)))
        table[np.arange(len(values)) - self.starts[self.owner], self.owner] = values
        return sum_terms(table)[self.owner]


def sigmoid(values: FloatArray) -> FloatArray:
    """1 / (1 + e^−x), without a warning where e^−x overflows and the result is 0."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-values)))


class Normalizer(Method):
    """Puts the scores of one list of one query on a common scale.

    A normalizer needs ``scale_lists`` alone::

        @normalizers.register
        class Halve(Normalizer):
            \"\"\"``halve``: x / 2.\"\"\"

            method: str = "halve"

            def scale_lists(self, lists: ScoreLists) -> FloatArray:
                return lists.scores / 2

    Attributes:
        method: Its name.
        constant: The value of every document of a list of equal scores, 0, 0.5 or 1: 1 in
            pyserini and Elasticsearch, 0 in ranx.
        searched: Whether a search over normalizers tries it; not where it has required options.
        reads_ranks: Whether a scaled score may depend on more than the scores of its list. Each
            class says so for itself: one that is derived may read more.
        reorders: What :attr:`keeps_order` denies, unless parameters change it.
    """

    searched: ClassVar[bool] = True
    reads_ranks: ClassVar[bool] = True
    reorders: ClassVar[bool] = False

    method: str
    constant: Annotated[float, Field(ge=0, le=1, multiple_of=0.5)] = 1

    @property
    def keeps_order(self) -> bool:
        """Whether a greater score always stays greater.

        Not where the scale is inverted, clipped, or so flat that different scores become equal.
        """
        return not self.reorders

    def space(self) -> tuple[Parameter, ...]:
        """What can be tuned, with paths relative to the normalizer."""
        return ()

    def keep_sources(self, names: Collection[str]) -> Normalizer:  # noqa: ARG002 - of some
        """The normalizer of fewer sources: itself, where it knows none.

        Args:
            names: Their names and roles.
        """
        return self

    @abstractmethod
    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the scores of ``lists``, list by list, on the new scale; finite."""

    def normalize_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): normalized scores; NaN where a source did not return the document."""
        return _normalized_scores(runs, self)

    def scale_finite(self, lists: ScoreLists) -> FloatArray:
        """The scaled lists; a sum or a square that overflows is an error."""
        try:
            with np.errstate(over="raise", invalid="raise"):
                scaled = self.scale_lists(lists)
        except (ArithmeticError, ValueError):  # fsum's own: an overflow, or -inf + inf
            scaled = np.full(len(lists.scores), np.nan)
        if not (np.abs(scaled) < HUGE).all():
            most = float(np.abs(lists.scores).max())
            raise AlignmentError(
                f"run {lists.name!r} has scores up to {most:g}, too large for the normalizer "
                f"{self.method!r}: rescale them"
            )
        return scaled

    def divide_or_constant(
        self, above: FloatArray, below: FloatArray, spread: NDArray[np.bool_] | None = None
    ) -> FloatArray:
        """``above / below``, but ``constant`` where ``below`` is 0 or ``spread`` is false."""
        where = below > 0 if spread is None else spread & (below > 0)
        if where.all():
            return above / below
        out: FloatArray = np.full(above.shape, float(self.constant))
        np.divide(above, below, out=out, where=where)
        return out


@cached_by_view(key=lambda normalizer: normalizer.model_dump_json())
def _normalized_scores(runs: AlignedRuns, normalizer: Normalizer) -> FloatArray:
    scaled = np.full(runs.scores.shape, np.nan)
    for s, (scores, row) in enumerate(zip(runs.scores, scaled, strict=True)):
        rows = np.flatnonzero(~np.isnan(scores))
        if len(rows):
            counts = np.diff(np.searchsorted(rows, runs.offsets))
            lists = ScoreLists(runs, s, rows, scores[rows], counts[counts > 0])
            row[rows] = normalizer.scale_finite(lists)
    make_readonly(scaled)
    return scaled


normalizers: MethodRegistry[Normalizer] = MethodRegistry(
    *("normalizer", "fusion_bench.methods.normalize", "fusion_bench.normalizers", Normalizer),
    adapter="fusion_bench.methods.own_functions:FunctionNormalizer",
)
normalizers.first = ("none", "min_max", "z_score")
#: A field of another model that holds a normalizer.
AnyNormalizer: TypeAlias = Annotated[
    SerializeAsAny[Normalizer], BeforeValidator(normalizers.validate_field)
]
