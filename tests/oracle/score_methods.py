"""Methods that go by normalized scores: one document and one source at a time."""

import math
from collections.abc import Callable, Sequence
from statistics import median

from tests.oracle.rank_methods import Scored
from tests.oracle.ranking import (
    FUSE,
    Config,
    List,
    RefusedError,
    Source,
    normalized,
    sigmoid,
    weights_of,
)

MIN_MAX: Config = {"method": "min_max"}
CLAMP = 1e-7


class Scores:
    """The normalized lists of one query, with the weight of each."""

    def __init__(
        self,
        documents: Sequence[str],
        lists: Sequence[List],
        sources: Sequence[Source],
        config: Config,
        scale: Config,
    ) -> None:
        self.weights = weights_of(sources, config)
        self.lists = [
            normalized(ranked, scale, source, len(documents))
            for source, ranked in zip(sources, lists, strict=True)
        ]

    def of(self, document: str) -> list[tuple[float, float]]:
        """Weight and score in each source that returned the document."""
        pairs = zip(self.weights, self.lists, strict=True)
        return [(weight, values[document]) for weight, values in pairs if document in values]

    def tops(self) -> list[tuple[float, float]]:
        """Weight and greatest score of each list that is not empty."""
        pairs = zip(self.weights, self.lists, strict=True)
        return [(weight, max(values.values())) for weight, values in pairs if values]


def comb(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> Scored:
    scale = config.get("normalize", {"method": "none"})
    scores = Scores(documents, lists, sources, config, scale)
    gamma: float = config.get("gamma", 0 if config["method"] == "comb_sum" else 1)

    def grown(values: Sequence[float]) -> float:
        return math.fsum(len(values) ** gamma * x for x in values)

    chosen: dict[str, Callable[[Sequence[float]], float]] = {
        "comb_max": max,
        "comb_min": min,
        "comb_med": median,
        "comb_anz": lambda values: math.fsum(values) / len(values),
    }
    combine = chosen.get(config["method"], grown)
    tops = [x for _, x in scores.tops()]
    top = max(tops) if config["method"] in chosen else grown([max(x, 0.0) for x in tops])
    return {d: combine([x for _, x in scores.of(d)]) for d in documents}, top


def mixed(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> Scored:
    scale = config.get("normalize", {"method": "none"})
    scores = Scores(documents, lists, sources, config, scale)

    def grown(pairs: Sequence[tuple[float, float]]) -> float:
        if config["method"] == "wmnz":
            total = math.fsum(w for w, _ in pairs)
            return math.fsum(total * x for _, x in pairs)
        return math.fsum(math.sqrt(len(pairs)) * (w * x) for w, x in pairs)

    top = grown([(w, max(x, 0.0)) for w, x in scores.tops()])
    return {d: grown(scores.of(d)) for d in documents}, top


def max_score(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> Scored:
    scores = Scores(documents, lists, sources, config, config.get("normalize", MIN_MAX))
    fused = {d: max(w * x for w, x in scores.of(d)) for d in documents}
    return fused, max(w * x for w, x in scores.tops())


def weighted_sum(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> Scored:
    scale = config.get("normalize", MIN_MAX)
    if config["method"] == "dbsf":
        scale = {"method": "dbsf", "constant": 0.5, "clip": config.get("clip", False)}
    scores = Scores(documents, lists, sources, config, scale)
    absent_adds_least = config.get("missing", "zero") == "min"

    def term(document: str, weight: float, values: dict[str, float]) -> float:
        if document in values:
            return weight * values[document]
        return weight * min(values.values()) if absent_adds_least and values else 0.0

    fused = {
        d: math.fsum(term(d, w, v) for w, v in zip(scores.weights, scores.lists, strict=True))
        for d in documents
    }
    top = math.fsum(w * (x if absent_adds_least else max(x, 0.0)) for w, x in scores.tops())
    return fused, top


def tm2c2(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> Scored:
    low = config.get("lo", {"semantic": -1.0, "keyword": 0.0})
    scale = {"method": "theoretical_min_max", "lo": low}
    scores = Scores(documents, lists, sources, config, scale)
    total = math.fsum(scores.weights)
    fused = {d: math.fsum(w * x for w, x in scores.of(d)) / total for d in documents}
    return fused, math.fsum(w * x for w, x in scores.tops()) / total


def log_odds(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> Scored:
    scores = Scores(
        documents, lists, sources, config, config.get("normalize", {"method": "logistic"})
    )
    factor = len(sources) ** config.get("exponent", 0.5)
    total = math.fsum(scores.weights)

    def evidence(p: float) -> float:
        if not 0 <= p <= 1:
            raise RefusedError("no probability")
        p = min(max(p, CLAMP), 1 - CLAMP)
        if config.get("gating", "none") == "softplus":
            return math.log(1 + p / (1 - p))
        return math.log(p / (1 - p))

    def pooled(pairs: Sequence[tuple[float, float]]) -> float:
        return sigmoid(factor * math.fsum(w * x for w, x in pairs) / total)

    fused = {d: pooled([(w, evidence(p)) for w, p in scores.of(d)]) for d in documents}
    return fused, pooled([(w, max(evidence(p), 0.0)) for w, p in scores.tops()])


METHODS = {
    "comb_sum": comb,
    "comb_max": comb,
    "comb_min": comb,
    "comb_med": comb,
    "comb_anz": comb,
    "comb_mnz": comb,
    "comb_gmnz": comb,
    "mixed": mixed,
    "wmnz": mixed,
    "max_score": max_score,
    "weighted_sum": weighted_sum,
    "dbsf": weighted_sum,
    "tm2c2": tm2c2,
    "log_odds": log_odds,
}
FUSE |= METHODS
