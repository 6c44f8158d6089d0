"""Reciprocal rank fusion, v2: the question's lists count double, and top ranks earn a bonus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, Params, table
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.fuse._base import fusions
from fusion_bench.fuse.rrf import RRF

__all__ = ["RRFv2"]

Rank = Annotated[int, Field(ge=1)]

#: Greatest bonus that a search looks at: in absolute terms a document that one list puts first has
#: 1/(k+1), .016 at k = 60; in relative ones that is 1.
GREATEST_BONUS = {"absolute": 0.2, "relative": 10.0}
#: Ranks that one entry of a searched table may span.
DEEPEST_BONUS = 10


@fusions.register
class RRFv2(RRF):
    """``rrf_v2``: Σ_s w_s / (k + r_s) + bonus of the best rank.

    Source: ADR-005, after qmd's ``reciprocalRankFusion``; qmd gives *every* list of the original
    query 2, here the weight goes by role and name.

    Attributes:
        bonus: Best rank up to which → what is added: ``{1: 0.05, 3: 0.02}`` = 0.05 at rank 1,
            0.02 at ranks 2 and 3.
        bonus_scope: ``best_rank`` = once a document, by its best rank in any source, whatever the
            source's weight; ``per_source`` = for its rank in each list; ``question`` = once, by
            its best rank in the lists of role ``question``.
        bonus_unit: ``absolute``, or ``relative`` = in multiples of 1/(k+1), so that tuning k does
            not change what the bonus means.
    """

    formula: ClassVar[str] = "Σ w/(k + rank) + bonus(best rank)"
    source: ClassVar[str] = "ADR-005; tobi/qmd"

    method: Literal["rrf_v2"] = "rrf_v2"  # type: ignore[assignment] # narrows its parent's name
    weights: dict[str, Weight] = Field(default_factory=lambda: {"question": 2.0})
    bonus: dict[Rank, Weight] = Field(default_factory=lambda: {1: 0.05, 3: 0.02})
    bonus_scope: Literal["best_rank", "per_source", "question"] = "best_rank"
    bonus_unit: Literal["absolute", "relative"] = "absolute"

    @field_validator("bonus")
    @classmethod
    def _by_rank(cls, value: dict[int, float]) -> dict[int, float]:
        return dict(sorted(value.items()))

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """k, the weights, and each entry of the bonus as it is declared."""
        greatest = GREATEST_BONUS[self.bonus_unit]
        return (*super().space(sources), *table("bonus", len(self.bonus), greatest, DEEPEST_BONUS))

    def suggestions(self) -> tuple[Params, ...]:
        """A bonus of 0.10 at rank 1, which ADR-005 names beside its 0.05."""
        if not self.bonus or self.bonus_unit != "absolute":
            return ()
        return ({"bonus.1.value": 0.10},)

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role.

        Raises:
            ConfigError: No source above weight 0 has the role ``question``.
        """
        _require_question(roles)
        weights = super().source_weights(sources, roles)
        _require_question([names for names, w in zip(roles, weights, strict=True) if w > 0])
        return weights

    def terms(self, runs: AlignedRuns) -> FloatArray:
        """(T, N): the weighted reciprocal ranks, then the bonus of each list it is given for."""
        return np.concatenate([super().terms(runs), self._bonus(self._scoped(runs))])

    def _tables(
        self, runs: AlignedRuns, ranks: IntArray
    ) -> tuple[tuple[tuple[int, ...], ...], FloatArray]:
        """The sources that each term looks at, and (C, n) the term at each of these ranks."""
        columns, tables = super()._tables(runs, ranks)
        bonus = columns
        if self.bonus_scope != "per_source":
            bonus = (tuple(s for s, asked in enumerate(self._asked(runs)) if asked),)
        return columns + bonus, np.concatenate(
            [tables, self._bonus(np.tile(ranks, (len(bonus), 1)))]
        )

    def _owners(self, runs: AlignedRuns, more: int) -> tuple[int | None, ...]:
        """Each list's own bonus, or the one of the document."""
        if self.bonus_scope == "per_source":
            return tuple(range(len(runs.sources)))
        return super()._owners(runs, more)

    def _asked(self, runs: AlignedRuns) -> list[bool]:
        """(S,): whether a source's ranks count for the one bonus of a document."""
        return [self.bonus_scope == "best_rank" or "question" in names for names in runs.roles]

    def _scoped(self, runs: AlignedRuns) -> IntArray:
        """(B, N): the ranks that earn a bonus; 0 = none."""
        if self.bonus_scope == "per_source":
            return runs.ranks
        asked = self._asked(runs)
        nowhere = np.iinfo(np.int64).max
        ranks = np.where(runs.ranks[asked] > 0, runs.ranks[asked], nowhere)
        best = np.min(ranks, axis=0, initial=nowhere)[None]
        return np.where(best == nowhere, 0, best)

    def _bonus(self, ranks: IntArray) -> FloatArray:
        """Bonus of each rank, the same shape."""
        limits = np.array([0, *self.bonus], dtype=np.int64)
        values = np.array([0.0, *self.bonus.values(), 0.0]) * self._unit()
        return np.asarray(values[np.searchsorted(limits, ranks)])

    def _unit(self) -> float:
        return 1 / (self.k + 1) if self.bonus_unit == "relative" else 1.0

    def _first_terms(self, runs: AlignedRuns) -> FloatArray:
        """(T,): what is summed for a document that is first everywhere with the greatest bonus."""
        times = len(runs.sources) if self.bonus_scope == "per_source" else 1
        greatest = max(self.bonus.values(), default=0.0) * self._unit()
        return np.concatenate([super()._first_terms(runs), np.full(times, greatest)])

    @property
    def scale_free(self) -> bool:
        """Only without a bonus: an absolute bonus does not grow with the weights."""
        return not any(self.bonus.values())

    @property
    def keeps_single_list(self) -> bool:
        """Only while the bonus never grows with the rank."""
        values = list(self.bonus.values())
        return values == sorted(values, reverse=True)


def _require_question(roles: Sequence[frozenset[str]]) -> None:
    if not any("question" in names for names in roles):
        in_use = sorted({role for names in roles for role in names})
        raise ConfigError(
            "rrf_v2 needs a source of role 'question' that weighs more than 0 (roles in use: "
            f"{', '.join(in_use) or 'none'}): declare the role in dataset.yaml, or use rrf"
        )
