"""Apache Lucene: ``TopDocs.rrf`` and ``LogOddsFusionQuery``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.config.parameters import Parameter, choice, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.engines.dialects._dialect import EngineDialect, Form, Values, read_template, share
from fusion_bench.engines.dialects._sums import CanonicalRRF
from fusion_bench.engines.dialects._translation import (
    Draft,
    EngineFusion,
    name_weights,
)
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import WeightedFusion
from fusion_bench.methods.fuse.log_odds import CLAMP, LogOdds

#: How far the sum of the weights may be from 1.
TOLERANCE = 1e-3
BaseRate = Annotated[float, Field(ge=0, lt=1)]
Bound = Annotated[float, Field(allow_inf_nan=False)]


class LogOddsFusionQuery(EngineFusion, WeightedFusion):
    """``LogOddsFusionQuery``: sigmoid(logit(base_rate) + n^alpha · pooled log-odds).

    Scores must be probabilities. A list without the document adds 0, which is neutral; pooled is
    Σ evidence / n, or Σ w·evidence, over the n lists. Evidence is logit(p) − logit(base rate of
    the list), then put between its bounds or gated.

    Attributes:
        alpha: How much more several lists convince than one.
        weights: By source name or role, 1 in all; none = the mean.
        gating: ``none``, or ``softplus`` = log(1 + e^x), which leaves no negative evidence.
        signal_base_rates: By source name, the base rate to take out; 0 = none.
        base_rate: The base rate to add once at the end; 0 = none.
        logit_bounds: By source name, least and greatest evidence, which become 0 and 1.
    """

    homogeneity = None  # weights of another sum are refused
    reorders = True  # beyond the bounds different scores become equal
    formula = "sigmoid(n^alpha · mean of logit(score))"
    source = "Lucene, LogOddsFusionQuery"

    method: str = "LogOddsFusionQuery"
    alpha: Annotated[float, Field(ge=0, le=1)] = 0.5
    gating: Literal["none", "softplus"] = "none"
    signal_base_rates: dict[str, BaseRate] = Field(default_factory=dict)
    base_rate: BaseRate = 0.0
    logit_bounds: dict[str, tuple[Bound, Bound]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_bounds(self) -> LogOddsFusionQuery:
        if self.logit_bounds and self.gating != "none":
            raise ValueError("logit_bounds and gating exclude each other: keep one")
        for name, (least, most) in self.logit_bounds.items():
            if least >= most:
                raise ValueError(f"logit_bounds: {name}: {least:g} must be below {most:g}")
        return self

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): the weights.

        Raises:
            ConfigError: They do not fit the sources, or do not add up to 1.
        """
        weights = super().source_weights(sources, roles)
        if self.weights and abs(float(weights.sum()) - 1) > TOLERANCE:
            raise ConfigError(
                f"weights: Lucene needs a sum of 1 ± {TOLERANCE}, given {weights.sum():g} over "
                f"{', '.join(sources)}"
            )
        if self.logit_bounds and (unbounded := set(sources) - set(self.logit_bounds)):
            raise ConfigError(f"logit_bounds: none for {', '.join(sorted(unbounded))}")
        return weights

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the fused probability."""
        count = len(runs.sources)
        weights = self.source_weights(runs.sources, runs.roles)
        shares = weights if self.weights else np.full(count, 1 / count)
        evidence = np.array([self._evidence(runs, s) for s in range(count)])
        pooled = sum_terms(np.where(runs.ranks > 0, shares[:, None] * evidence, 0.0))
        fused = _logit_or_zero(self.base_rate) + count**self.alpha * pooled
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.exp(-fused)))

    def _evidence(self, runs: AlignedRuns, s: int) -> FloatArray:
        """(N,): the log-odds of a source's scores; 0 where it has none."""
        name = runs.sources[s]
        chance = np.clip(np.nan_to_num(runs.scores[s], nan=0.5), CLAMP, 1 - CLAMP)
        values = np.log(chance / (1 - chance)) - _logit_or_zero(self.signal_base_rates.get(name, 0))
        if self.logit_bounds:
            least, most = self.logit_bounds[name]
            values = np.clip((values - least) / (most - least), 0, 1)
        if self.gating == "softplus":
            values = np.logaddexp(0, values)
        return np.asarray(values)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no weights
        """The gating; alpha changes no order without a base rate."""
        return (
            ()
            if self.logit_bounds
            else (choice("gating", "none", "softplus"), real("alpha", 0.0, 1.0))
        )


def _logit_or_zero(rate: float) -> float:
    """The log-odds of a base rate; 0 for none."""
    return float(np.log(rate / (1 - rate))) if rate > 0 else 0.0


def _write_floats(values: Sequence[float]) -> str:
    return f"new float[] {{{', '.join(f'{value!r}f' for value in values)}}}" if values else "null"


class LuceneRRF(CanonicalRRF):
    """``rrf``: Σ_s 1 / (k + rank), ranks from 1; no weights.

    Attributes:
        k: Flattens the difference between neighboring ranks. Lucene has no default.
    """

    formula = "Σ 1/(k + rank)"
    source = "Lucene 10, TopDocs.rrf"

    method: str = "rrf"
    k: Annotated[int, Field(ge=1, le=1000)] = 60


@dialects.register
class Lucene(EngineDialect):
    """Apache Lucene 10, and LogOddsFusionQuery of the main branch."""

    name = "lucene"
    title = "Apache Lucene"
    version = "10.3"
    checked = "2026-11-22"
    source = "https://lucene.apache.org/core/10_3_1/core/org/apache/lucene/search/TopDocs.html"
    methods = (LuceneRRF, LogOddsFusionQuery)
    ignores = (
        "TopDocs.rrf has no weights.",
        "A bonus for top ranks cannot be said.",
    )

    forms = (
        Form({"Search.java": read_template("lucene_rrf.java")}, {"method": "rrf"}),
        Form(
            {"Search.java": read_template("lucene_log_odds.java")}, {"method": "LogOddsFusionQuery"}
        ),
    )
    notes = ("Give it the query of each list by its name.",)
    lists = (2, 1000)
    no_weights = "TopDocs.rrf has none; they are left out"

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """``rrf`` for sums of reciprocal ranks, a query of log-odds for ``log_odds``."""
        if not isinstance(ours := draft.fusion, LogOdds):
            return super().convert(draft)
        if ours.normalize.method != "none":
            draft.refuse(
                f"normalize: {ours.normalize.method!r} is the task of the clauses, which must "
                "give probabilities"
            )
        weights = name_weights(share(draft.weights))
        options = {"alpha": ours.exponent, "gating": ours.gating, "weights": weights}
        return {"method": "LogOddsFusionQuery", **options}

    @classmethod
    def finish(cls, draft: Draft, fusion: Mapping[str, Any]) -> Translation:
        """A query of log-odds without a window."""
        if fusion["method"] != "LogOddsFusionQuery":
            return super().finish(draft, fusion)
        if draft.system.depth is not None:
            draft.lose("depth: a query of log-odds has none")
        return draft.finish(fusion, top_k=draft.system.top_k)

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Values of a system; those of a query of log-odds as Java writes them."""
        values, fusion = super().list_values(system, roles), system.fusion
        if not isinstance(fusion, LogOddsFusionQuery):
            return values
        if system.depth is not None:
            raise ConfigError(f"system {system.name!r}: depth: a query of log-odds has none")
        bounds = [fusion.logit_bounds[name] for name in system.runs if fusion.logit_bounds]
        rates = [fusion.signal_base_rates.get(name, 0.0) for name in system.runs]
        return {
            **values,
            "gating_name": fusion.gating.upper(),
            "alpha_float": f"{fusion.alpha!r}f",
            "base_rate_float": f"{fusion.base_rate!r}f",
            "weight_floats": _write_floats(values["weights"] if fusion.weights else []),
            "least_floats": _write_floats([least for least, _ in bounds]),
            "most_floats": _write_floats([most for _, most in bounds]),
            "rate_floats": _write_floats(rates if fusion.signal_base_rates else []),
        }
