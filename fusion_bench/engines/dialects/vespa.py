"""Vespa: reciprocal ranks and linear normalization in the global phase of a rank profile."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, real
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    common_window,
    most_results,
    read_file,
    read_json,
    unreadable,
    weights_by_source,
    write_json,
)
from fusion_bench.engines.dialects._translation import CanonicalFusion, Draft, name_weights
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.methods.normalize.linear import MinMax

PROFILE, QUERY = "rank-profile.sd", "query.json"
NUMBER = r"[\d.]+(?:[eE][-+]?\d+)?"
TERM = re.compile(
    rf"({NUMBER}) \* (reciprocal_rank|normalize_linear)\(list_(\d+)(?:, ({NUMBER}))?\)"
)


class VespaReciprocalRank(CanonicalFusion):
    """``reciprocal_rank``: Σ_s w_s / (k + rank), ranks from 1 over all hits of the global phase.

    Attributes:
        k: Flattens the difference between neighboring ranks.
        weights: By source name or role: factors in the expression.
    """

    formula: ClassVar[str] = "Σ w·reciprocal_rank(feature, k)"
    source: ClassVar[str] = "Vespa documentation, phased ranking"

    method: str = "reciprocal_rank"
    k: Annotated[float, Field(ge=0, le=1000)] = 60
    weights: dict[str, Weight] = Field(default_factory=dict)

    @property
    def canonical(self) -> RRF:
        """Our ``rrf``, where a list without the document adds nothing."""
        return RRF(k=self.k, weights=self.weights)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """K and the weights."""
        _, *weights = self.canonical.space(sources)
        return (real("k", 1.0, 1000.0, log=True), *weights)


class VespaNormalizeLinear(CanonicalFusion):
    """``normalize_linear``: Σ_s w_s·(x − min) / (max − min); 0.5 for equal scores.

    The bench divides the sum by the sum of the weights, which changes no order.

    Attributes:
        weights: By source name or role: factors in the expression.
    """

    formula: ClassVar[str] = "Σ w·normalize_linear(feature)"
    source: ClassVar[str] = "Vespa documentation, phased ranking; LinearNormalizer.java"

    method: str = "normalize_linear"
    weights: dict[str, Weight] = Field(default_factory=dict)

    @property
    def canonical(self) -> WeightedScore:
        """Our weighted mean, where a list without the document counts 0."""
        return WeightedScore(normalize=MinMax(constant=0.5), missing="zero", weights=self.weights)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weights."""
        return RRF(weights=self.weights).space(sources)[1:]


@dialects.register
class Vespa(Dialect):
    """Vespa 8."""

    name = "vespa"
    title = "Vespa"
    version = "8"
    source = "https://docs.vespa.ai/en/ranking/phased-ranking.html"
    methods = (VespaReciprocalRank, VespaNormalizeLinear)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 100, "top_k": 10}  # rerank-count, hits
    precision = "float64"
    ignores = (
        "No hit lacks a feature: each has a rank and a score for every list.",
        "A depth of its own for each list cannot be said: rerank-count is one for all.",
    )

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """Never exact: Vespa ranks every hit by every feature."""
        draft = Draft(cls, system, roles)
        if len(draft.sources) < 2:
            return draft.refuse("runs: two or more features are fused")
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        else:
            draft.lose("missing: every hit has a rank and a score for every feature")
            if (ranks := draft.find_reciprocal_ranks()) is not None:
                constants = set(ranks.k.values())
                constant = sum(constants) / len(constants)
                if len(constants) > 1:
                    draft.lose(f"k: one for all lists, {constant:g}")
                fusion = {"k": constant, "weights": name_weights(ranks.weights)}
            elif (mean := draft.find_score_sum()) is not None:
                if mean.normalize.method != "min_max":
                    return draft.refuse(f"normalize: {cls.title} has no {mean.normalize.method!r}")
                weights = name_weights(draft.weights)
                fusion = {"method": "normalize_linear", "weights": weights}
            else:
                return draft.refuse_fusion()
        return draft.finish(fusion, **draft.choose_windows(cut_to_window=True))

    @classmethod
    def write(cls, system: System) -> Configuration:
        """A rank profile and the parameters of a query."""
        check_writable(cls, system)
        fusion, window = system.fusion, common_window(system)
        last = f", {fusion.k!r}" if isinstance(fusion, VespaReciprocalRank) else ""
        weights = weights_by_source(system)
        functions = "".join(
            f"    # {json.dumps(name)}\n"
            f"    function list_{n}() {{\n        expression: FEATURE\n    }}\n"
            for n, name in enumerate(weights, 1)
        )
        terms = " + ".join(
            f"{weight!r} * {fusion.method}(list_{n}{last})"
            for n, weight in enumerate(weights.values(), 1)
        )
        profile = (
            f"rank-profile fused {{\n{functions}    global-phase {{\n"
            f"        rerank-count: {window}\n        expression: {terms}\n    }}\n}}\n"
        )
        request = {"yql": "YQL", "ranking": "fused", "hits": min(most_results(system), window)}
        return Configuration(
            {PROFILE: profile, QUERY: write_json(request)},
            (
                f"Put {PROFILE} into the schema; add the inputs and the first phase that it needs.",
                "Replace each FEATURE by the rank feature of its list, such as bm25(text) or "
                "closeness(field, embedding), and YQL by the query.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from a rank profile and the parameters of a query.

        Raises:
            ConfigError: They are none.
        """
        text, request = read_file(files, PROFILE), read_json(files, QUERY)
        names = [json.loads(line) for line in re.findall(r'^ *# (".*")$', text, re.MULTILINE)]
        terms = TERM.findall(text)
        window = re.search(r"rerank-count: (\d+)", text)
        if window is None or not terms or len(terms) != len(names) or not isinstance(request, dict):
            raise unreadable(PROFILE, cls.title, "no global phase over functions list_1, list_2, …")
        fusion: dict[str, Any] = {"method": terms[0][1]}
        if fusion["method"] == "reciprocal_rank":
            fusion["k"] = float(terms[0][3])
        fusion["weights"] = {names[int(n) - 1]: float(weight) for weight, _, n, _ in terms}
        return {
            "runs": names,
            "dialect": cls.name,
            "fusion": fusion,
            "depth": int(window[1]),
            "top_k": request.get("hits", 10),
        }
