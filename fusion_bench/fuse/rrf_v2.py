"""Reciprocal rank fusion, v2: the question's lists weigh double, and top ranks earn a bonus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.models import ByRank, Weight
from fusion_bench.config.parameters import Parameter, Params, table
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.fuse._base import fusions
from fusion_bench.fuse._rank_terms import RankTerm, RankTermFusion, common_number
from fusion_bench.fuse.rrf import RRF

#: Greatest bonus that a search tries. One list's first document has 1/(k+1), .016 at k = 60, in
#: absolute terms, and 1 in relative ones.
GREATEST_BONUS = {"absolute": 0.2, "relative": 10.0}
#: Ranks that one entry of a searched table may span.
DEEPEST_BONUS = 10


@fusions.register
class RRFv2(RankTermFusion):
    """``rrf_v2``: Σ_s w_s / (k_s + r_s) + bonus of the best rank.

    Source: ``reciprocalRankFusion`` of https://github.com/tobi/qmd (ADR-005). qmd gives *every*
    list of the original query weight 2; here the weight goes by role and name.

    Attributes:
        bonus: Best rank up to which → what is added: ``{1: 0.05, 3: 0.02}`` = 0.05 at rank 1,
            0.02 at ranks 2 and 3.
        bonus_scope: ``best_rank`` = once a document, by its best rank in any source, whatever the
            source's weight; ``per_source`` = for its rank in each list; ``question`` = once, by
            its best rank in the lists of role ``question``.
        bonus_unit: ``absolute``, or ``relative`` = in multiples of 1/(k+1), so that tuning k does
            not change what the bonus means. Where k differs per source, it needs
            ``bonus_scope: per_source``: each list's bonus then goes by the k of that list.
    """

    formula: ClassVar[str] = "Σ w/(k + rank) + bonus(best rank)"
    source: ClassVar[str] = "tobi/qmd on GitHub; ADR-005"

    method: str = "rrf_v2"
    weights: dict[str, Weight] = Field(default_factory=lambda: {"question": 2.0})
    bonus: ByRank[Weight] = Field(default_factory=lambda: {1: 0.05, 3: 0.02})
    bonus_scope: Literal["best_rank", "per_source", "question"] = "best_rank"
    bonus_unit: Literal["absolute", "relative"] = "absolute"

    @property
    def plain_rrf(self) -> RRF:
        """The same without the bonus."""
        return RRF(weights=self.weights, k=self.k)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """k, the weights, and each entry of the bonus as it is declared."""
        greatest = GREATEST_BONUS[self.bonus_unit]
        bonus = table("bonus", len(self.bonus), greatest, DEEPEST_BONUS)
        return (*self.plain_rrf.space(sources), *bonus)

    def presets(self) -> tuple[Params, ...]:
        """A bonus of 0.10 at rank 1, which its source names beside 0.05."""
        if not self.bonus or self.bonus_unit != "absolute":
            return ()
        return ({"bonus.1.value": 0.10},)

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role.

        Raises:
            ConfigError: No source above weight 0 has the role ``question``.
        """
        is_asked = any("question" in names for names in roles)
        weights = super().source_weights(sources, roles) if is_asked else np.ones(len(sources))
        used = [names for names, weight in zip(roles, weights, strict=True) if weight > 0]
        if not any("question" in names for names in used):
            in_use = ", ".join(sorted({role for names in used for role in names})) or "none"
            raise ConfigError(
                "rrf_v2 needs a source of role 'question' that weighs more than 0 (roles in use: "
                f"{in_use}): declare the role in dataset.yaml, or use rrf"
            )
        return weights

    def rank_terms(self, runs: AlignedRuns) -> tuple[RankTerm, ...]:
        """The weighted reciprocal ranks, then the bonus of each list or of the document."""
        reciprocals = self.plain_rrf.rank_terms(runs)
        greatest = max(self.bonus.values(), default=0.0)
        constants = self.source_numbers("k", runs.sources, runs.roles)
        scopes: list[tuple[int | None, tuple[int, ...]]]
        if self.bonus_scope == "per_source":
            scopes = [(s, (s,)) for s in range(len(runs.sources))]
        else:
            anywhere = self.bonus_scope == "best_rank"
            scoped = [s for s, names in enumerate(runs.roles) if anywhere or "question" in names]
            scopes = [(None, tuple(scoped))]
        scales = [self._bonus_scale(constants[[*columns]]) for _, columns in scopes]
        return reciprocals + tuple(
            RankTerm("bonus", source, columns, partial(self._bonus_at, scale), greatest * scale)
            for (source, columns), scale in zip(scopes, scales, strict=True)
        )

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """As for every sum of ranks; a relative bonus of several lists needs one k for them.

        Raises:
            ConfigError: The sources do not fit.
        """
        super().check_sources(sources, roles)
        if self.bonus_scope != "per_source":
            weights = self.source_weights(sources, roles)
            anywhere = self.bonus_scope == "best_rank"
            scoped = [anywhere or "question" in names for names in roles]
            self._bonus_scale(self.source_numbers("k", sources, roles)[scoped & (weights > 0)])

    def _bonus_at(self, scale: float, ranks: IntArray) -> FloatArray:
        """(n,): the bonus of each rank; 0 at rank 0."""
        limits = np.array([0, *self.bonus], dtype=np.int64)
        values = np.array([0.0, *self.bonus.values(), 0.0]) * scale
        return np.asarray(values[np.searchsorted(limits, ranks)])

    def _bonus_scale(self, constants: FloatArray) -> float:
        """What an entry of the table is multiplied by, for a bonus of sources with these k."""
        if self.bonus_unit == "absolute":
            return 1.0
        k = common_number(constants) if isinstance(self.k, Mapping) else self.k
        if k is None:
            listed = ", ".join(f"{value:g}" for value in constants)
            raise ConfigError(
                "bonus_unit: relative counts in 1/(k+1), which needs one k for the lists of one "
                f"bonus, given {listed}: use bonus_scope: per_source, or bonus_unit: absolute"
            )
        return 1 / (k + 1)

    @property
    def weight_scale_invariant(self) -> bool:
        """Only without a bonus, which does not grow with the weights."""
        return not any(self.bonus.values())

    @property
    def keeps_single_list(self) -> bool:
        """Only while the bonus never grows with the rank."""
        values = list(self.bonus.values())
        return values == sorted(values, reverse=True)
