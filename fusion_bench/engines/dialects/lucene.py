"""Apache Lucene: ``TopDocs.rrf`` and ``LogOddsFusionQuery``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.config.parameters import Parameter, choice, integer, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    read_file,
    refuse_unreadable,
    weights_by_source,
    windows_by_source,
)
from fusion_bench.engines.dialects._translation import (
    LONGEST_WINDOW,
    CanonicalFusion,
    Draft,
    EngineFusion,
    name_weights,
)
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Homogeneity, WeightedFusion
from fusion_bench.methods.fuse.log_odds import LogOdds
from fusion_bench.methods.fuse.rrf import RRF

#: Probabilities are kept this far from 0 and 1.
CLAMP = 1e-7
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

    formula: ClassVar[str] = "sigmoid(n^alpha · mean of logit(score))"
    source: ClassVar[str] = "Lucene, LogOddsFusionQuery"

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

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """None: weights of another sum are refused."""
        return None

    @property
    def keeps_single_list(self) -> bool:
        """Not beyond the bounds, where different scores become equal."""
        return False

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


def log_odds_code(system: System, fusion: LogOddsFusionQuery, top: int) -> str:
    """The body of the method with a query of log-odds."""
    weights = weights_by_source(system)
    bounds = [fusion.logit_bounds.get(name, (0.0, 0.0)) for name in system.runs]
    rates = [fusion.signal_base_rates.get(name, 0.0) for name in system.runs]
    clauses = ", ".join(f"queries.get({json.dumps(name)})" for name in system.runs)
    arguments = [
        f"List.of({clauses})",
        f"{fusion.alpha!r}f",
        _floats([*weights.values()] if fusion.weights else []),
        _floats([least for least, _ in bounds] if fusion.logit_bounds else []),
        _floats([most for _, most in bounds] if fusion.logit_bounds else []),
        f"LogOddsFusionQuery.Gating.{fusion.gating.upper()}",
        _floats(rates if fusion.signal_base_rates else []),
        f"{fusion.base_rate!r}f",
    ]
    listed = "".join(f"            {argument},\n" for argument in arguments)[:-2]
    return (
        f"    Query fused =\n        new LogOddsFusionQuery(\n{listed});\n"
        f"    return searcher.search(fused, {top});\n"
    )


def _floats(values: Sequence[float]) -> str:
    return f"new float[] {{{', '.join(f'{value!r}f' for value in values)}}}" if values else "null"


def read_log_odds(dialect: str, text: str, names: Sequence[str]) -> dict[str, Any]:
    """A system from the method with a query of log-odds.

    Raises:
        ValueError: It is none.
    """
    number = r"(-?[\d.]+(?:[eE][-+]?\d+)?)f"
    array = r"(null|new float\[\] \{[^}]*\})"
    gate = r"LogOddsFusionQuery\.Gating\.(\w+)"
    parts = [number, array, array, array, gate, array, number]
    query = re.search(r",\s+".join(parts) + r"\);", text)
    top = re.search(r"searcher\.search\(fused, (\d+)\)", text)
    if query is None or top is None or not names:
        raise ValueError("neither TopDocs.rrf nor LogOddsFusionQuery")
    alpha, weights, least, most, gating, rates, base_rate = query.groups()
    by_name = [
        dict(zip(names, map(float, re.findall(number, values)), strict=values != "null"))
        for values in (weights, least, most, rates)
    ]
    fusion = {
        "method": "LogOddsFusionQuery",
        "alpha": float(alpha),
        "weights": by_name[0],
        "logit_bounds": {name: [low, by_name[2][name]] for name, low in by_name[1].items()},
        "gating": gating.lower(),
        "signal_base_rates": by_name[3],
        "base_rate": float(base_rate),
    }
    top_k = int(top[1])
    system = {"runs": [*names], "dialect": dialect, "fusion": fusion}
    return {**system, "top_k": None if top_k >= LONGEST_WINDOW else top_k}


FILE = "Search.java"


class LuceneRRF(CanonicalFusion):
    """``rrf``: Σ_s 1 / (k + rank), ranks from 1; no weights.

    Attributes:
        k: Flattens the difference between neighboring ranks. Lucene has no default.
    """

    formula: ClassVar[str] = "Σ 1/(k + rank)"
    source: ClassVar[str] = "Lucene 10, TopDocs.rrf"

    method: str = "rrf"
    k: Annotated[int, Field(ge=1, le=1000)] = 60

    @property
    def canonical(self) -> RRF:
        """Our ``rrf`` without weights."""
        return RRF(k=self.k)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no weights
        """k, evenly by its logarithm."""
        return (integer("k", 1, 1000, log=True),)


@dialects.register
class Lucene(Dialect):
    """Apache Lucene 10, and LogOddsFusionQuery of the main branch."""

    name = "lucene"
    title = "Apache Lucene"
    version = "10.3"
    source = "https://lucene.apache.org/core/10_3_1/core/org/apache/lucene/search/TopDocs.html"
    methods = (LuceneRRF, LogOddsFusionQuery)
    ignores = (
        "TopDocs.rrf has no weights.",
        "A bonus for top ranks cannot be said.",
    )

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``rrf`` for sums of reciprocal ranks, a query of log-odds for ``log_odds``."""
        draft = Draft(cls, system, roles)
        if len(draft.sources) < 2:
            return draft.refuse("runs: two or more lists are fused")
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            if not ranks.has_equal_weights:
                draft.lose("weights: TopDocs.rrf has none; they are left out")
            fusion = {"k": draft.choose_rank_constant(ranks, 1)}
        elif isinstance(ours := draft.fusion, LogOdds):
            if ours.normalize.method != "none":
                return draft.refuse(
                    f"normalize: {ours.normalize.method!r} is the task of the clauses, which must "
                    "give probabilities"
                )
            total = sum(draft.weights.values())
            weights = {name: weight / total for name, weight in draft.weights.items()}
            fusion = {
                "method": "LogOddsFusionQuery",
                "alpha": ours.exponent,
                "gating": ours.gating,
                "weights": name_weights(weights),
            }
        else:
            return draft.refuse_fusion()
        if fusion.get("method") == "LogOddsFusionQuery":
            if system.depth is not None:
                draft.lose("depth: a query of log-odds has none")
            return draft.finish(fusion, top_k=system.top_k)
        return draft.finish(fusion, **draft.choose_windows(by_source=True))

    @classmethod
    def write(cls, system: System) -> Configuration:
        """A Java method."""
        check_writable(cls, system)
        fusion, windows = system.fusion, windows_by_source(system)
        top = system.top_k or sum(windows.values())
        if isinstance(fusion, LogOddsFusionQuery):
            if system.depth is not None:
                raise ConfigError(f"system {system.name!r}: depth: a query of log-odds has none")
            body = log_odds_code(system, fusion, top)
        else:
            lists = "".join(
                f"        searcher.search(queries.get({json.dumps(name)}), {windows[name]}),\n"
                for name in system.runs
            )
            k = fusion.model_dump()["k"]
            body = (
                f"    TopDocs[] hits = {{\n{lists}    }};\n"
                f"    return TopDocs.rrf({top}, {k}, hits);\n"
            )
        code = (
            "import java.io.IOException;\nimport java.util.List;\nimport java.util.Map;\n"
            "import org.apache.lucene.search.*;\n\npublic final class Search {\n"
            "  public static TopDocs search(IndexSearcher searcher, Map<String, Query> queries)\n"
            f"      throws IOException {{\n{body}  }}\n}}\n"
        )
        note = "Give it the query of each list by its name."
        return Configuration({FILE: code}, (note,))

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from the Java method.

        Raises:
            ConfigError: It is none.
        """
        text = read_file(files, FILE)
        names = [
            json.loads(name) for name in re.findall(r'queries\.get\(("(?:[^"\\]|\\.)*")\)', text)
        ]
        call = re.search(r"TopDocs\.rrf\((\d+), (\d+), hits\)", text)
        if names and call is not None:
            limits = [int(limit) for limit in re.findall(r'"\), (\d+)\),$', text, re.MULTILINE)]
            return {
                "runs": names,
                "dialect": cls.name,
                "fusion": {"method": "rrf", "k": int(call[2])},
                "depth": dict(zip(names, limits, strict=True)),
                "top_k": int(call[1]),
            }
        with refuse_unreadable(FILE, cls.title):
            return read_log_odds(cls.name, text, names)
