"""The slow obvious loop: one query, one document, one term at a time, on plain dicts.

Written from the formulas, not from the package: nothing here imports it. Sums are
``math.fsum``, keys are what ``'%.11e'`` prints, and sorting is Python's own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple, TypeAlias

Config: TypeAlias = Mapping[str, Any]
Row: TypeAlias = tuple[str, str, float, int]  # query, document, score, rank column


class Entry(NamedTuple):
    """Where a source put a document, and with what score."""

    rank: int
    score: float


List: TypeAlias = dict[str, Entry]  # one query's list, best first


class RefusedError(Exception):
    """The configuration cannot be computed on these lists: the package must refuse it too."""


@dataclass(frozen=True)
class Source:
    name: str
    roles: frozenset[str]
    lists: Mapping[str, List]


# Reading ----------------------------------------------------------------------------------------


def key(score: float) -> float:
    return float(f"{score:.11e}")


def read(
    rows: Sequence[Row],
    *,
    rank_from: str = "score",
    source_ties: str = "trec",
    on_duplicate: str = "error",
    drop_zero_scores: bool = False,
) -> dict[str, List]:
    """Rows in file order → each query's list."""
    shift = 1 if min(row[3] for row in rows) == 0 else 0
    lists: dict[str, List] = {}
    for query in dict.fromkeys(row[0] for row in rows):
        mine = [row for row in rows if row[0] == query]
        if on_duplicate == "error" and len({row[1] for row in mine}) < len(mine):
            raise RefusedError("duplicate")
        if drop_zero_scores:
            mine = [row for row in mine if row[2] != 0]
        if rank_from == "column":
            mine = sorted(mine, key=lambda row: row[3])
        else:
            if source_ties == "trec":
                mine = sorted(mine, key=lambda row: row[1].encode(), reverse=True)
            mine = sorted(mine, key=lambda row: -key(row[2]))
        kept: List = {}
        for _, document, score, column in mine:
            if document not in kept:
                rank = column + shift if rank_from == "column" else len(kept) + 1
                kept[document] = Entry(rank, score)
        lists[query] = kept
    return lists


def cut(ranked: List, depth: int | None) -> List:
    return {d: e for d, e in ranked.items() if depth is None or e.rank <= depth}


# Normalizers ------------------------------------------------------------------------------------


def normalized(ranked: List, config: Config, source: Source, union: int) -> dict[str, float]:
    """Scores of one list on the scale of ``config``."""
    if not ranked:
        return {}
    method = config["method"]
    if method == "by_source":
        return normalized(ranked, scale_of(source, config), source, union)
    if method == "rank":
        return {d: 1 - (e.rank - 1) / len(ranked) for d, e in ranked.items()}
    if method == "borda":
        return {d: 1 - (e.rank - 1) / union for d, e in ranked.items()}
    scores = [entry.score for entry in ranked.values()]
    scaled: Scaled
    if method == "theoretical_min_max":
        scaled = _from_low(scores, declared_low(scores, config, source))
    else:
        scaled = SCALES[method](scores, config)
    if scaled is None:
        usual = 0.5 if method == "logistic" else 1
        return dict.fromkeys(ranked, float(config.get("constant", usual)))
    return dict(zip(ranked, scaled, strict=True))


#: None = the list is constant, and the formula has no value.
Scaled: TypeAlias = list[float] | None


def _from_low(scores: list[float], low: float) -> Scaled:
    high = max(scores)
    return None if high == low else [(x - low) / (high - low) for x in scores]


def scale_of(source: Source, config: Config) -> Config:
    """The normalizer that ``by_source`` has for a source."""
    scales = config["sources"].items()
    fitting = [scale for key, scale in scales if key == source.name or key in source.roles]
    if len(fitting) > 1:
        raise RefusedError("two normalizers fit one source")
    other: Config = config.get("default", {"method": "none"})
    return fitting[0] if fitting else other


def declared_low(scores: list[float], config: Config, source: Source) -> float:
    fitting = [v for k, v in config["lo"].items() if k == source.name or k in source.roles]
    if len(fitting) != 1 or min(scores) < fitting[0]:
        raise RefusedError("theoretical_min_max needs one lo under every score")
    return float(fitting[0])


def _none(scores: list[float], _: Config) -> Scaled:
    return scores


def _min_max(scores: list[float], _: Config) -> Scaled:
    return _from_low(scores, min(scores))


def _min_max_inverted(scores: list[float], _: Config) -> Scaled:
    low, high = min(scores), max(scores)
    return None if high == low else [(high - x) / (high - low) for x in scores]


def _max(scores: list[float], _: Config) -> Scaled:
    high = max(scores)
    if high <= 0:
        raise RefusedError("max needs a positive greatest score")
    return [x / high for x in scores]


def _sum(scores: list[float], _: Config) -> Scaled:
    low = min(scores)
    total = math.fsum(x - low for x in scores)
    return None if total == 0 else [(x - low) / total for x in scores]


def _z_score(scores: list[float], _: Config) -> Scaled:
    if max(scores) == min(scores):
        return None
    mean = math.fsum(scores) / len(scores)
    sd = math.sqrt(math.fsum((x - mean) * (x - mean) for x in scores) / len(scores))
    return [(x - mean) / sd for x in scores]


def _l2(scores: list[float], _: Config) -> Scaled:
    norm = math.sqrt(math.fsum(x * x for x in scores))
    return None if norm == 0 else [x / norm for x in scores]


def _sigmoid(scores: list[float], _: Config) -> Scaled:
    return [sigmoid(x) for x in scores]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _arctan(scores: list[float], _: Config) -> Scaled:
    return [2 / math.pi * math.atan(x) for x in scores]


def _dbsf(scores: list[float], config: Config) -> Scaled:
    if max(scores) == min(scores):
        return None
    mean = math.fsum(scores) / len(scores)
    squares = math.fsum((x - mean) * (x - mean) for x in scores)
    sd = math.sqrt(squares / (len(scores) - 1))
    low, high = mean - 3 * sd, mean + 3 * sd
    scaled = [(x - low) / (high - low) for x in scores]
    return [min(1.0, max(0.0, x)) for x in scaled] if config.get("clip", True) else scaled


def _logistic(scores: list[float], config: Config) -> Scaled:
    beta = config["beta"] if config.get("beta") is not None else median(scores)
    base_rate = config.get("base_rate", 0.5)
    prior = math.log(base_rate / (1 - base_rate))
    if config.get("alpha") is not None:
        return [sigmoid(config["alpha"] * (x - beta) + prior) for x in scores]
    if max(scores) == min(scores):
        return None
    mean = math.fsum(scores) / len(scores)
    sd = math.sqrt(math.fsum((x - mean) * (x - mean) for x in scores) / len(scores))
    return [sigmoid((x - beta) / sd + prior) for x in scores]


SCALES: dict[str, Callable[[list[float], Config], Scaled]] = {
    "none": _none,
    "min_max": _min_max,
    "min_max_inverted": _min_max_inverted,
    "max": _max,
    "sum": _sum,
    "z_score": _z_score,
    "l2": _l2,
    "sigmoid": _sigmoid,
    "arctan": _arctan,
    "dbsf": _dbsf,
    "logistic": _logistic,
}


# Fusion -----------------------------------------------------------------------------------------


def weight_of(source: Source, weights: Mapping[str, float]) -> float:
    return number_of(source, weights, 1.0)


def number_of(source: Source, numbers: Mapping[str, float], default: float) -> float:
    fitting = [x for key, x in numbers.items() if key == source.name or key in source.roles]
    if len(fitting) > 1:
        raise RefusedError("two numbers fit one source")
    return fitting[0] if fitting else default


def weights_of(sources: Sequence[Source], config: Config) -> list[float]:
    if (alpha := config.get("alpha")) is not None:
        return [alpha if "semantic" in source.roles else 1 - alpha for source in sources]
    default = {"question": 2} if config["method"] == "rrf_v2" else {}
    return [weight_of(source, config.get("weights", default)) for source in sources]


def check_sources(sources: Sequence[Source], config: Config) -> None:
    """Refuse what no query is needed for."""
    if config.get("alpha") is not None:
        is_pair = len(sources) == 2 and sum("semantic" in s.roles for s in sources) == 1
        if not is_pair and weights_of(sources, config) != [1]:  # the other one would weigh 0
            raise RefusedError("alpha needs a pair")
    scale = config.get("normalize")
    if isinstance(scale, Mapping) and scale["method"] == "by_source":
        for source in sources:
            scale_of(source, scale)


def k_of(source: Source, config: Config) -> float:
    k: float | Mapping[str, float] = config.get("k", 60)
    return number_of(source, k, 60) if isinstance(k, Mapping) else k


def common_k(sources: Sequence[Source], config: Config) -> float:
    if len(numbers := {k_of(source, config) for source in sources}) > 1:
        raise RefusedError("one k is needed")
    return numbers.pop()


def first_seen(lists: Sequence[List]) -> list[str]:
    seen: dict[str, None] = {}
    for ranked in lists:
        for document in sorted(ranked, key=lambda d: ranked[d].rank):
            seen.setdefault(document)
    return list(seen)


def bonus_at(rank: int, bonus: Mapping[int, float]) -> float:
    for limit in sorted(bonus):
        if rank <= limit:
            return bonus[limit]
    return 0.0


def rrf_terms(
    document: str, lists: Sequence[List], sources: Sequence[Source], config: Config
) -> list[float]:
    weights = config.get("weights", {"question": 2} if config["method"] == "rrf_v2" else {})
    terms = [
        weight_of(source, weights) / (k_of(source, config) + ranked[document].rank)
        for source, ranked in zip(sources, lists, strict=True)
        if document in ranked
    ]
    if config["method"] != "rrf_v2":
        return terms
    bonus = config.get("bonus", {1: 0.05, 3: 0.02})
    scope = config.get("bonus_scope", "best_rank")
    ranks = [
        (ranked[document].rank, bonus_unit(source, sources, config))
        for source, ranked in zip(sources, lists, strict=True)
        if document in ranked and (scope != "question" or "question" in source.roles)
    ]
    if scope != "per_source":
        ranks = [min(ranks)] if ranks else []
    return terms + [bonus_at(rank, bonus) * unit for rank, unit in ranks]


def bonus_unit(source: Source, sources: Sequence[Source], config: Config) -> float:
    """What a bonus for the rank in this source is counted in."""
    if config.get("bonus_unit") != "relative":
        return 1.0
    scope = config.get("bonus_scope", "best_rank")
    asked = [s for s in sources if scope == "best_rank" or "question" in s.roles]
    return 1 / ((k_of(source, config) if scope == "per_source" else common_k(asked, config)) + 1)


def first_everywhere(sources: Sequence[Source], config: Config) -> float:
    """Σ w/(k+1), with the greatest bonus: no document can have more."""
    weights = config.get("weights", {"question": 2} if config["method"] == "rrf_v2" else {})
    terms = [weight_of(source, weights) / (k_of(source, config) + 1) for source in sources]
    if config["method"] == "rrf_v2":
        asked = [s for s in sources if "question" in s.roles]
        earning = {"best_rank": sources[:1], "question": asked[:1], "per_source": sources}[
            config.get("bonus_scope", "best_rank")
        ]
        greatest = max(config.get("bonus", {1: 0.05, 3: 0.02}).values(), default=0.0)
        terms += [greatest * bonus_unit(source, sources, config) for source in earning]
    return math.fsum(terms)


def rrf(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> tuple[dict[str, float], float]:
    """Unclamped score of every document, and the greatest possible one."""
    top = first_everywhere(sources, config)
    divisor = {"none": 1.0, "max_possible": top}.get(config.get("normalize", "none"))
    if divisor is None:
        divisor = 3 / (common_k(sources, config) + 1)
    scores = {d: math.fsum(rrf_terms(d, lists, sources, config)) / divisor for d in documents}
    return scores, top / divisor


def weighted_score(
    documents: Sequence[str], lists: Sequence[List], sources: Sequence[Source], config: Config
) -> tuple[dict[str, float], float]:
    scales = config.get("normalize", {"method": "none"})
    missing = config.get("missing", "skip")
    weights = weights_of(sources, config)
    scaled = [
        normalized(ranked, scales, source, len(documents))
        for source, ranked in zip(sources, lists, strict=True)
    ]

    def said(n: int, document: str) -> float | None:
        if document in scaled[n]:
            return scaled[n][document]
        if missing == "zero":
            return 0.0
        return min(scaled[n].values()) if missing == "min" and scaled[n] else None

    def mean(values: Sequence[float | None]) -> float:
        pairs = [(w, x) for w, x in zip(weights, values, strict=True) if x is not None]
        return math.fsum(w * x for w, x in pairs) / math.fsum(w for w, _ in pairs)

    scores = {d: mean([said(n, d) for n in range(len(sources))]) for d in documents}
    tops = [max(values.values(), default=None) for values in scaled]
    if missing == "skip":
        return scores, max(top for top in tops if top is not None)
    if missing == "zero":
        tops = [max(top or 0.0, 0.0) for top in tops]
    return scores, mean(tops)


#: Method → documents, lists, sources, configuration → unclamped scores, greatest possible score.
FUSE: dict[
    str,
    Callable[
        [Sequence[str], Sequence[List], Sequence[Source], Config], tuple[dict[str, float], float]
    ],
] = {"rrf": rrf, "rrf_v2": rrf, "weighted_score": weighted_score}


# Blends -----------------------------------------------------------------------------------------


def unit_scores(rerank: List, candidates: Sequence[str], space: str) -> dict[str, float]:
    scored = {d: rerank[d] for d in candidates if d in rerank}
    if space == "order":
        by_rank = sorted(scored, key=lambda d: scored[d].rank)
        n = len(by_rank)
        return {d: (n + 1 - i) / n for i, d in enumerate(by_rank, start=1)}
    raw = {d: entry.score for d, entry in scored.items()}
    if space == "logit":
        return {d: sigmoid(x) for d, x in raw.items()}
    if space == "log_prob":
        return {d: math.exp(x) for d, x in raw.items()}
    return min_max(raw) if space == "unbounded" else raw


def min_max(values: Mapping[str, float]) -> dict[str, float]:
    if not values:
        return {}
    low, high = min(values.values()), max(values.values())
    return {d: (x - low) / (high - low) if high > low else 1.0 for d, x in values.items()}


def retrieval_terms(
    shown: Mapping[str, float],
    order: Sequence[str],
    candidates: Sequence[str],
    top: float,
    how: str,
) -> dict[str, float]:
    if how == "reciprocal_rank":
        return {d: 1 / (order.index(d) + 1) for d in candidates}
    if how == "fused_min_max":
        keys = {f"{shown[d]:.11e}": shown[d] for d in reversed(candidates)}  # first of equal ones
        return min_max({d: keys[f"{shown[d]:.11e}"] for d in candidates})
    if how == "fused_max_possible":
        if top <= 0 and candidates:
            raise RefusedError("the greatest possible score is not positive")
        return {d: shown[d] / top for d in candidates}
    return {d: shown[d] for d in candidates}


def share_at(rank: int, config: Config) -> float:
    tiers: Mapping[int, float] = config.get("tiers", {3: 0.75, 10: 0.60})
    for limit in sorted(tiers):
        if rank <= limit:
            return tiers[limit]
    return float(config.get("rest", 0.40))


def blended_score(
    rank: int, rerank: float, retrieval: Callable[[], float], config: Config
) -> float:
    if config["method"] == "replace":
        return rerank
    if config["method"] == "linear":
        beta = config.get("beta", 1.0)
        return math.fsum([beta * rerank, (1 - beta) * retrieval()])
    share = share_at(rank, config)
    return math.fsum([share * retrieval(), (1 - share) * rerank])


# The whole of it --------------------------------------------------------------------------------


def rank(
    system: Config,
    sources: Sequence[Source],
    query: str,
    *,
    rerank: List | None = None,
    space: str = "unit",
    ties: str = "trec",
) -> list[tuple[str, float]]:
    """One query's final list with its final scores.

    Args:
        system: What the package's ``System`` takes, as plain data.
        sources: Every source of the dataset, in the system's order.
        query: Whose list.
        rerank: The query's rerank list.
        space: What its scores mean.
        ties: The tie rule.
    """
    fusion = system.get("fusion", {"method": "rrf"})
    check_sources(sources, fusion)
    active = [s for s, w in zip(sources, weights_of(sources, fusion), strict=True) if w > 0]
    if not active:
        raise RefusedError("every source weighs 0")
    if fusion["method"] == "rrf_v2" and not any("question" in s.roles for s in active):
        raise RefusedError("rrf_v2 needs a question")
    depth = system.get("depth")
    lists = [
        cut(s.lists.get(query, {}), depth.get(s.name) if isinstance(depth, dict) else depth)
        for s in active
    ]
    appearance = first_seen(lists)
    if not appearance:
        return []
    scores, top = FUSE[fusion["method"]](appearance, lists, active, fusion)
    by_rule = (
        appearance
        if ties == "first_seen"
        else sorted(appearance, key=lambda d: d.encode(), reverse=True)
    )
    order = sorted(by_rule, key=lambda d: -key(scores[d]))
    shown = dict(scores)
    if fusion.get("normalize") == "three_lists":
        shown, top = {d: min(x, 1.0) for d, x in scores.items()}, min(top, 1.0)
    final = _blended(system.get("blend"), order, shown, top, rerank or {}, space)
    floor = system.get("min_relevance")
    if floor is not None:
        final = [(d, x) for d, x in final if not x < floor]
    return final[: system.get("top_k")]


def _blended(
    blend: Config | None,
    order: Sequence[str],
    shown: Mapping[str, float],
    top: float,
    rerank: List,
    space: str,
) -> list[tuple[str, float]]:
    keep_all = [(d, shown[d]) for d in order]
    if blend is None or blend["method"] == "none":
        return keep_all
    if not blend.get("always_rerank", True) and len(order) <= blend.get("skip_limit", 10):
        return keep_all
    depth = blend.get("depth", 50)
    candidates, tail = list(order[:depth]), order[depth:]
    unit = unit_scores(rerank, candidates, space)
    unscored = [d for d in candidates if d not in unit]
    if unscored and blend.get("missing", "error") == "error":
        raise RefusedError("a candidate lacks a rerank score")
    if blend.get("missing") == "zero":
        unit |= dict.fromkeys(unscored, 0.0)
        unscored = []
    terms = (
        retrieval_terms(shown, order, candidates, top, blend.get("retrieval", "fused"))
        if blend["method"] != "replace"
        else {}
    )
    final = {
        d: blended_score(order.index(d) + 1, x, lambda d=d: terms[d], blend)  # type: ignore[misc]
        for d, x in unit.items()
    }
    floor = blend.get("min_score")
    kept = [d for d in candidates if d in final and (floor is None or not unit[d] < floor)]
    ranked = [(d, final[d]) for d in sorted(kept, key=lambda d: -key(final[d]))]
    ranked += [(d, shown[d]) for d in unscored]
    return ranked + [(d, shown[d]) for d in tail if blend.get("tail", "keep") == "keep"]
