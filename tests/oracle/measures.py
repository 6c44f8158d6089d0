"""The slow obvious loop for every measure: one query, one list of ids, one dict of grades."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, permutations, product

from fusion_bench.measures import Measure

Judgments = Mapping[str, int]


def measure_value(measure: Measure, ranked: Sequence[str], judgments: Judgments) -> float:
    if measure.judged_only:
        # As trec_eval -J: a negative grade is "in the pool, but not judged".
        ranked = [document for document in ranked if judgments.get(document, -1) >= 0]
    shown = ranked if measure.cutoff is None else ranked[: measure.cutoff]
    return ORACLES[measure.method](measure, shown, judgments)


def _ndcg(measure: Measure, shown: Sequence[str], judgments: Judgments) -> float:
    def gain(grade: int) -> float:
        if grade <= 0:
            return 0.0
        return float(grade) if "exp-log2" not in measure.name else 2.0**grade - 1

    def dcg(grades: Sequence[int]) -> float:
        total = 0.0
        for position, grade in enumerate(grades, start=1):
            total += gain(grade) / math.log2(position + 1)
        return total

    best = sorted(judgments.values(), reverse=True)
    ideal = dcg(best if measure.cutoff is None else best[: measure.cutoff])
    return dcg([judgments.get(document, 0) for document in shown]) / ideal if ideal else 0.0


def _is_relevant(measure: Measure, document: str, judgments: Judgments) -> bool:
    return document in judgments and judgments[document] >= getattr(measure, "rel", 1)


def _found(measure: Measure, shown: Sequence[str], judgments: Judgments) -> int:
    return sum(_is_relevant(measure, document, judgments) for document in shown)


def _rr(measure: Measure, shown: Sequence[str], judgments: Judgments) -> float:
    for position, document in enumerate(shown, start=1):
        if _is_relevant(measure, document, judgments):
            return 1 / position
    return 0.0


def _ap(measure: Measure, shown: Sequence[str], judgments: Judgments) -> float:
    relevant = _found(measure, list(judgments), judgments)
    total, found = 0.0, 0
    for position, document in enumerate(shown, start=1):
        if _is_relevant(measure, document, judgments):
            found += 1
            total += found / position
    return total / relevant if relevant else 0.0


def _recall(measure: Measure, shown: Sequence[str], judgments: Judgments) -> float:
    relevant = _found(measure, list(judgments), judgments)
    return _found(measure, shown, judgments) / relevant if relevant else 0.0


def _precision(measure: Measure, shown: Sequence[str], judgments: Judgments) -> float:
    assert measure.cutoff is not None
    return _found(measure, shown, judgments) / measure.cutoff


def _success(measure: Measure, shown: Sequence[str], judgments: Judgments) -> float:
    return float(_found(measure, shown, judgments) > 0)


def _judged(_measure: Measure, shown: Sequence[str], judgments: Judgments) -> float:
    if not shown:
        return 0.0
    return sum(document in judgments for document in shown) / len(shown)


def _err(measure: Measure, shown: Sequence[str], judgments: Judgments) -> float:
    """Chapelle et al., CIKM 2009, equation 4: Σ 1/r · P(the reader stops at r)."""
    value, unsatisfied = 0.0, 1.0
    for position, document in enumerate(shown, start=1):
        grade = max(judgments.get(document, 0), 0)
        satisfied = (2**grade - 1) / 2 ** getattr(measure, "max_grade", 4)
        value += unsatisfied * satisfied / position
        unsatisfied *= 1 - satisfied
    return value


def rbp_weights(p: float, length: int, *, of_cwl_eval: bool) -> list[float]:
    """(1 − p) p^(r − 1); those of cwl_eval are scaled so that the first 1,000 sum to 1."""
    total = sum(p**i for i in range(1000)) if of_cwl_eval else 1 / (1 - p)
    return [0.0 if of_cwl_eval and i >= 1000 else p**i / total for i in range(length)]


def _rbp(measure: Measure, shown: Sequence[str], judgments: Judgments) -> float:
    p, rel = getattr(measure, "p", 0.8), getattr(measure, "rel", None)
    weights = rbp_weights(p, len(shown), of_cwl_eval=rel is not None and measure.cutoff is None)
    grades = [max(judgments.get(document, 0), 0) for document in shown]
    gains = [grade if rel is None else grade >= rel for grade in grades]
    return sum(weight * gain for weight, gain in zip(weights, gains, strict=True))


ORACLES = {
    "nDCG": _ndcg,
    "RR": _rr,
    "AP": _ap,
    "R": _recall,
    "P": _precision,
    "Success": _success,
    "Judged": _judged,
    "ERR": _err,
    "RBP": _rbp,
}


def orders(scores: Mapping[str, float]) -> Iterator[list[str]]:
    """Every order of the documents that falls by score."""
    by_score = sorted(scores, key=lambda document: -scores[document])
    groups = [list(group) for _, group in groupby(by_score, key=lambda d: scores[d])]
    for choice in product(*(permutations(group) for group in groups)):
        yield [document for group in choice for document in group]
