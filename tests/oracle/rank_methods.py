"""Methods that go by ranks, and votes: one document and one source at a time."""

import math
from collections.abc import Callable, Mapping, Sequence

from tests.oracle.ranking import FUSE, Config, List, Source, k_of, number_of, weights_of

Scored = tuple[dict[str, float], float]


def rbc(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> Scored:
    phi, weights = config.get("phi", 0.9), weights_of(sources, config)

    def term(document: str, weight: float, ranked: List) -> float:
        if document not in ranked:
            return 0.0
        return float(weight * (1 - phi) * phi ** (ranked[document].rank - 1))

    scores = {
        d: math.fsum(term(d, w, ranked) for w, ranked in zip(weights, lists, strict=True))
        for d in documents
    }
    return scores, math.fsum(w * (1 - phi) for w in weights)


def inverse_squares(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> Scored:
    weights = weights_of(sources, config)
    factors: dict[str, Callable[[int], float]] = {
        "isr": float,
        "log_isr": math.log,
        "logn_isr": lambda n: math.log(n + config.get("sigma", 0.01)),
    }
    factor = factors[config["method"]]

    def score(document: str) -> float:
        pairs = [
            (w, r[document].rank) for w, r in zip(weights, lists, strict=True) if document in r
        ]
        return math.fsum(factor(len(pairs)) * (w / rank**2) for w, rank in pairs)

    top = math.fsum(factor(len(sources)) * w for w in weights)
    return {d: score(d) for d in documents}, top


def borda(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> Scored:
    weights = weights_of(sources, config)

    def points(document: str, ranked: List) -> float:
        handed_out = list(range(len(documents), 0, -1))
        if document in ranked:
            return handed_out[ranked[document].rank - 1]
        left = handed_out[len(ranked) :]
        return sum(left) / len(left)

    scores = {
        d: math.fsum(w * points(d, ranked) for w, ranked in zip(weights, lists, strict=True))
        for d in documents
    }
    return scores, math.fsum(w * len(documents) for w in weights)


def condorcet(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> Scored:
    weights = weights_of(sources, config)

    def place(document: str, ranked: List) -> float:
        return ranked[document].rank if document in ranked else math.inf

    def beats(one: str, other: str) -> bool:
        votes = [
            w * ((place(one, r) < place(other, r)) - (place(one, r) > place(other, r)))
            for w, r in zip(weights, lists, strict=True)
        ]
        return math.fsum(votes) > 1e-9 * math.fsum(weights)

    def score(document: str) -> float:
        others = [d for d in documents if d != document]
        wins = sum(beats(document, d) for d in others)
        ties = sum(not beats(document, d) and not beats(d, document) for d in others)
        return 1 + wins + ties / 2

    return {d: score(d) for d in documents}, float(len(documents))


def softmax_rrf(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> Scored:
    weights = weights_of(sources, config)
    scores = {d: [0.0] for d in documents}
    for source, weight, ranked in zip(sources, weights, lists, strict=True):
        k, t, a = (
            number_of(source, given, default) if isinstance(given, Mapping) else given
            for field, default in (("k", 60), ("temperature", 1.0), ("rank_decay", 0.02))
            for given in [config.get(field, default)]
        )
        exponents = {d: entry.score / t - a * entry.rank for d, entry in ranked.items()}
        top = max(exponents.values(), default=0.0)
        powers = {d: math.exp(max(x - top, -650.0)) for d, x in exponents.items()}
        total = math.fsum(powers.values())
        for d, power in powers.items():
            scores[d].append(weight * (power / total) / (k + ranked[d].rank))
    top = math.fsum(w / (k_of(s, config) + 1) for w, s in zip(weights, sources, strict=True))
    return {d: math.fsum(terms) for d, terms in scores.items()}, top


METHODS = {
    "rbc": rbc,
    "isr": inverse_squares,
    "log_isr": inverse_squares,
    "logn_isr": inverse_squares,
    "borda": borda,
    "weighted_borda": borda,
    "condorcet": condorcet,
    "weighted_condorcet": condorcet,
    "softmax_rrf": softmax_rrf,
}
FUSE |= METHODS
