"""Tuning runs that differ in one thing each, for the golden page of their findings."""

from typing import Any

from fusion_bench.checks.collection_warnings import warn_near_duplicates
from fusion_bench.checks.records import DataWarning, NearDuplicates
from fusion_bench.report.tuning_records import (
    DataFacts,
    Look,
    PairedDifference,
    ParameterInfo,
    ParetoFront,
    ParetoPoint,
    Plateau,
)
from fusion_bench.report.tuning_texts import PreferredSystem
from fusion_bench.stats.unjudged import UnjudgedResult
from tests.report.cases import run
from tests.report.tuning_cases import (
    by_type_too,
    front,
    front_with_points,
    gain,
    needed,
    record,
    thresholds,
    typed,
)

CHOICE = record().choice
DOWN = gain(-0.01, -0.03, 0.01)
NOTHING = gain(0.0, 0.0, 0.0, wins=0, losses=0)
FEW: dict[str, Any] = {"verdict": "too few queries"}
UNJUDGED = UnjudgedResult(
    candidate_share=0.4, baseline_share=0.1, judged_only=-0.02, low=-0.03, high=-0.01, filled=-0.04
)
ALL_JUDGED = UNJUDGED.model_copy(update={"candidate_share": 0.0, "baseline_share": 0.0})
BM25 = PreferredSystem("bm25", {"runs": ["bm25"]}, loss_share=0.012)
FEWEST = BM25._replace(reason="it needs the fewest lists", alternatives=3, loss_share=None)
UNDECLARED = UnjudgedResult(
    candidate_share=0.4, baseline_share=0.1, judged_only=None, low=None, high=None, filled=None
)
LOOK = Look(
    number=1, level=0.02, power=0.773, next_number=2, next_level=0.0025, next_query_factor=1.697
)
FACTS = DataFacts(
    runs=(run(zero_scores=3),),
    warnings=(DataWarning(key="zero scores", text="bm25 has rows with score 0."),),
    judgments="pooled",
    queries=100,
    unjudged_shares={"the default": 0.1, "the tuned system": 0.4},
    tied={"the default": 0, "the tuned system": 6},
    source_tied={"the default": 50, "the tuned system": 5},
)
DUPLICATES = NearDuplicates(
    dataset="c",
    queries=9,
    linked=4,
    groups=1,
    largest=4,
    links={"same text": 3},
    is_too_large=True,
)
LARGE = PairedDifference(mean=0.05, low=0.03, high=0.07)


def chosen(**changed: Any) -> dict[str, Any]:  # noqa: ANN401 - any field's value
    return {"choice": CHOICE.model_copy(update=changed)}


def look(**changed: Any) -> dict[str, Any]:  # noqa: ANN401 - any field's value
    return {"look": LOOK.model_copy(update=changed)}


def ratio(high: float, value: float) -> dict[str, Any]:
    """One weight, of which only the ratio to the others counts."""
    weight = ParameterInfo(path="w", kind="float", low=0.01, high=high, default=1.0, ratio=True)
    return {"parameters": (weight,), **chosen(params={"w": value})}


def effort(difference: PairedDifference, **changed: Any) -> dict[str, Any]:  # noqa: ANN401
    """The default at depth 50 is chosen; depth 60 is better than it by a difference."""

    def update(point: ParetoPoint) -> ParetoPoint:
        if point.depth == 50:
            return point.model_copy(update={"roles": ("default", "chosen")})
        if point.depth == 60:
            best = {"roles": (), "value": 0.9, "over_default": difference, **changed}
            return point.model_copy(update=best)
        return point

    points = tuple(update(point) for point in front().points)
    return {"front": front(points=points), "held_out": gain(0.01, 0.0, 0.02)}


def points(points: dict[int, dict[str, Any]]) -> dict[str, ParetoFront]:
    """A front with some points changed, by their depth."""
    return {"front": front_with_points(points)}


CONTRADICTED = {"unjudged": UNJUDGED, "is_contradicted": True}
OTHER_RERANKER = effort(LARGE, reranker="other")["front"].model_copy(update=CONTRADICTED)

#: Name → the changed fields of the usual run.
CASES: dict[str, dict[str, Any]] = {
    "usual": {},
    "worse": {"verdict": "worse", "held_out": gain(-0.03, -0.05, -0.01), "needed": needed(5)},
    "keep": {"verdict": "keep", "held_out": gain(0.0, -0.002, 0.002), "needed": needed(5)},
    "few": {**FEW, "held_out": gain(0.01, -0.01, 0.03), "needed": needed(12_000)},
    "few, by no number known": {**FEW, "held_out": gain(0.01, None, None), "needed": None},
    "few, with enough for the gain": {**FEW, "needed": needed(50)},
    "few, without a gain": {**FEW, "held_out": DOWN, "nested": DOWN},
    "few, with a next look": {**FEW, "look": LOOK, "needed": None},
    "few tuning queries": {
        "verdict": "too few tuning queries",
        **chosen(trial=0),
    },
    "unjudged decide": {"verdict": "unjudged decide", "unjudged": UNJUDGED},
    "the default was chosen": {
        **chosen(trial=0),
        "verdict": "keep",
        "tune": NOTHING,
        "held_out": NOTHING,
        "nested": NOTHING,
    },
    "ship beside a source": {"untuned": BM25},
    "ship beside three": {"untuned": FEWEST},
    "ship beside a source, if unjudged documents are not relevant": {
        "untuned": BM25,
        "unjudged": UNDECLARED,
    },
    "keep beside a better source": {"verdict": "keep", "untuned": BM25},
    "the default was chosen beside a better source": {
        **chosen(trial=0),
        "verdict": "keep",
        "untuned": BM25,
    },
    "groups decide": {"verdict": "groups decide"},
    "300 groups": {"held_out": gain(0.03, 0.01, 0.05, queries=400, groups=300)},
    "ship without draws": {"held_out": gain(0.03, None, None, loss_share=None)},
    "a loss held out": {"tune": gain(0.04, -1, 1), "held_out": gain(-0.01, -1, 1)},
    "no gain on the tuning queries": {"tune": gain(0.0, -1, 1), "held_out": gain(0.0, -1, 1)},
    "no nested cross-validation": {"nested": None, "folds": ()},
    "a wide plateau": {"plateau": Plateau(share=0.5, sample=100)},
    "a narrow peak": {"plateau": Plateau(share=0.001, sample=100)},
    "no plateau": {"plateau": None},
    **{f"{count} trials of lists": {"list_trials": count} for count in (2, 3, 4)},
    "nearest within one standard error": chosen(rule="one_standard_error", trial=3),
    "greatest after shrinkage": chosen(rule="shrinkage", trial=3),
    "the default after shrinkage": chosen(rule="shrinkage", trial=0),
    "the highest mean after shrinkage": chosen(rule="shrinkage"),
    "unjudged documents": {"unjudged": UNJUDGED},
    "all judged": {"unjudged": ALL_JUDGED},
    "interrupted": {"interrupted": True},
    "a type that loses": {"by_type": typed()},
    "several warnings": {
        **chosen(params={"fusion.k": 1, "blend.beta": 1.0}),
        "interrupted": True,
        "verdict": "unjudged decide",
        "unjudged": UNJUDGED,
        "by_type": typed(),
    },
    "data": {"data": FACTS},
    "data, completely judged": {"data": FACTS.model_copy(update={"judgments": "complete"})},
    "near duplicates": {
        "data": FACTS.model_copy(update={"warnings": tuple(warn_near_duplicates(DUPLICATES))})
    },
    **{
        f"chosen: {params}": chosen(params=params)
        for params in (
            {"fusion.weights.dense": 0},
            {"fusion.weights.dense": 1.99},
            {"fusion.weights.dense": 0.01},
            {"fusion.k": 2},
            {"fusion.k": 999},
            {"fusion.k": 1, "blend.beta": 1.0},
            {"blend.method": "none"},
        )
    },
    "ratio: highest of 1": ratio(1.0, 1.0),
    "ratio: middle of 2": ratio(2.0, 1.0),
    "ratio: lowest": ratio(1.5, 0.02),
    **{
        f"{verdict} for types and thresholds": {
            "per_type": by_type_too(verdict),
            "thresholds": (thresholds(verdict),),
        }
        for verdict in ("ship", "worse", "keep", "too few queries")
    },
    "a deeper depth is better": {"verdict": "keep", **effort(LARGE)},
    "a deeper depth is not shown to be": {
        "verdict": "keep",
        **effort(PairedDifference(mean=0.05, low=-0.01, high=0.11)),
    },
    "a deeper depth gains too little": {
        "verdict": "keep",
        **effort(PairedDifference(mean=0.014, low=0.01, high=0.02)),
    },
    "a deeper depth without an interval": {
        "verdict": "keep",
        **effort(PairedDifference(mean=0.05, low=None, high=None)),
    },
    "another reranker is better": effort(LARGE, reranker="other"),
    "unjudged documents contradict it": {**effort(LARGE), "front": OTHER_RERANKER},
    "a look": look(),
    "a look of a line": look(line=3, file="looks.jsonl"),
    "looks that are missing": look(line=3, file="looks.jsonl", lost="line 9 is gone"),
    "a look of a plan": look(max_queries=400),
    "an uncounted look": {"look": Look(number=None, level=0.025, power=0.8, note="because")},
    "a front": {"front": front()},
    "a front of one depth": points({10: {"value": 0.54}}),
    "a front without a reranker": points(
        {0: {"value": 0.6}, 10: {"efficient": False}, 60: {"efficient": False}}
    ),
    "a front without an interval": points(
        {10: {"over_best": PairedDifference(mean=0.01, low=None, high=None)}}
    ),
    "the default on the front": points(
        {50: {"efficient": True, "value": 0.5581}, 10: {"value": 0.52}}
    ),
    "an interrupted front": {"front": front(interrupted=True), "interrupted": True},
}
