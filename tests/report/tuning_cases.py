"""Records of tuning runs made by hand: each test states only what it is about."""

from typing import Any

from fusion_bench.evaluation.report_file import Provenance
from fusion_bench.report.tuning_records import (
    CalibrationBin,
    ChosenTrial,
    FloorRow,
    Fold,
    Gain,
    Importance,
    ParameterInfo,
    ParetoFront,
    ParetoPoint,
    PerTypeResult,
    Plateau,
    RerankerEffort,
    ThresholdReport,
    ThresholdRule,
    TrialRecord,
    TuningReport,
    TypeGain,
)
from fusion_bench.report.tuning_texts import recommend
from fusion_bench.stats.power import SampleSize

PARAMETERS = (
    ParameterInfo(path="fusion.k", kind="int", low=1, high=1000, log=True, default=60),
    ParameterInfo(path="fusion.weights.dense", kind="float", low=0.0, high=2.0, default=1.0),
    ParameterInfo(path="blend.method", kind="choice", choices=("none", "linear"), default="none"),
    ParameterInfo(
        path="blend.beta", kind="float", low=0.0, high=1.0, condition="blend.method is linear"
    ),
)


def gain(difference: float, low: float | None, high: float | None, **changed: Any) -> Gain:  # noqa: ANN401
    data = {
        "default": 0.5,
        "tuned": 0.5 + difference,
        "difference": difference,
        "low": low,
        "high": high,
        "p": 0.012,
        "sd": 0.2,
        "loss_share": 0.006,
        "wins": 30,
        "ties": 50,
        "losses": 20,
        "queries": 100,
        "groups": 100,
    }
    return Gain.model_validate(data | changed)


def needed(queries: int) -> SampleSize:
    return SampleSize(queries=queries, low=queries // 2, high=queries * 2, at_least=False)


def floor_row(answer: str = "worse", **changed: Any) -> FloorRow:  # noqa: ANN401
    data = {
        "name": "bm25",
        "kind": "source",
        "mean": 0.48,
        "difference": -0.05,
        "low": -0.08,
        "high": -0.02,
        "p": 0.001,
        "answer": answer,
    }
    return FloorRow.model_validate(data | changed)


def trials(count: int = 40) -> tuple[TrialRecord, ...]:
    """The default, a seed, then a sampler that finds a ridge, then one that failed."""
    made = [
        TrialRecord(
            number=0,
            params={"fusion.k": 60, "fusion.weights.dense": 1.0, "blend.method": "none"},
            value=0.5,
            origin="default",
        )
    ]
    for n in range(1, count):
        params: dict[str, Any] = {
            "fusion.k": 1 + (n * 37) % 200,
            "fusion.weights.dense": (n * 0.29) % 2,
            "blend.method": "linear" if n % 3 else "none",
        }
        if params["blend.method"] == "linear":
            params["blend.beta"] = (n * 0.17) % 1
        value = 0.5 + 0.04 * (1 - abs(params["fusion.weights.dense"] - 1.2)) - 1e-5 * n
        origin = "seed" if n == 1 else "sampler"
        made.append(
            TrialRecord(number=n, params=params, value=None if n == 5 else value, origin=origin)
        )
    return tuple(made)


def record(**changed: Any) -> TuningReport:  # noqa: ANN401
    """A tuning run that found something and confirmed it; ``untuned`` is what is preferred."""
    tried = trials()
    best = max((t for t in tried if t.value is not None), key=lambda t: t.value or 0.0)
    data: dict[str, Any] = {
        "name": "mine",
        "dataset": "made-up",
        "fingerprint": "f" * 64,
        "system": "today",
        "measure": "nDCG@10",
        "split": "50% of each query type held out by the hash of the query id",
        "split_seed": "s",
        "settings": {"trials": 40, "alpha": 0.05, "min_gain": 0.005, "sampler": "tpe"},
        "parameters": PARAMETERS,
        "default": {"runs": ["dense", "bm25"]},
        "choice": ChosenTrial(
            rule="best", trial=best.number, params=best.params, config={"runs": ["dense", "bm25"]}
        ),
        "tune": gain(0.04, 0.02, 0.06),
        "nested": gain(0.035, 0.015, 0.055),
        "held_out": gain(0.03, 0.01, 0.05),
        "verdict": "ship",
        "needed": needed(13_000),
        "floor": (floor_row(),),
        "first_group": ("the tuned system", "bm25"),
        "folds": tuple(
            Fold(
                params={**best.params, "fusion.k": k},
                difference=0.04,
                unseen=0.03 if k > 10 else -0.01,
                queries=33,
            )
            for k in (10, 20, 40)
        ),
        "plateau": Plateau(share=0.12, sample=100),
        "importances": (
            Importance(path="fusion.weights.dense", share=0.7),
            Importance(path="fusion.k", share=0.3),
        ),
        "trials": tried,
        "held_out_queries": tuple(f"q{i}" for i in range(100)),
        "held_out_values": tuple(
            (0.5, 0.5 + (0.1 if i < 30 else 0 if i < 80 else -0.1)) for i in range(100)
        ),
        "provenance": Provenance(
            created="2026-01-01T00:00:00+00:00",
            source="mine.yaml",
            source_sha256="0" * 64,
            versions={"rank-fusion-bench": "1"},
            v2_enabled=True,
        ),
    }
    data |= changed
    untuned = data.pop("untuned", None)
    data["verdict_against_default"] = data.pop("verdict")
    report = TuningReport.model_validate(data)
    return report.model_copy(update={"recommendation": recommend(report, untuned)})


def thresholds(verdict: str = "ship") -> ThresholdReport:
    def rule(upper: float, lower: float, utility: float) -> ThresholdRule:
        return ThresholdRule(
            upper=upper,
            lower=lower,
            utility=utility,
            correct=(40, 10),
            ambiguous=(5, 15),
            incorrect=(0, 30) if upper > lower else (0, 0),
        )

    return ThresholdReport.model_validate(
        {
            "name": "today",
            "kind": "system",
            "reranker": "ce",
            "top": 10,
            "credit": 0.75,
            "default": rule(0.7, 0.3, 0.7),
            "tuned": rule(0.5, 0.2, 0.8),
            "min_score": rule(0.4, 0.4, 0.6),
            "gain": gain(0.1, 0.05, 0.15, default=0.7, tuned=0.8),
            "verdict": verdict,
            "calibration": (
                CalibrationBin(score=0.1, share=0.2, queries=50),
                CalibrationBin(score=0.9, share=0.7, queries=50),
            ),
        }
    )


def by_type_too(verdict: str = "keep") -> PerTypeResult:
    return PerTypeResult.model_validate(
        {
            "params": {"local": {"fusion.k": 12}},
            "config": {"runs": ["dense"]},
            "gain": gain(0.03, 0.01, 0.05),
            "over_global": gain(0.001, -0.002, 0.004),
            "verdict": verdict,
        }
    )


def typed() -> tuple[TypeGain, ...]:
    return (
        TypeGain(type="local", gain=gain(0.08, 0.03, 0.13)),
        TypeGain(type=None, gain=gain(-0.04, -0.07, -0.01)),
    )


def front(**changed: Any) -> ParetoFront:  # noqa: ANN401
    """One reranker: the default at depth 50 is off the front, the choice is its end."""

    def point(depth: int, value: float, efficient: bool, *roles: str) -> ParetoPoint:
        return ParetoPoint.model_validate(
            {
                "roles": roles,
                "reranker": "ce" if depth else None,
                "depth": depth,
                "candidates": float(depth),
                "cost": depth / 500,
                "seconds": depth / 100,
                "slow": depth / 50,
                "value": value,
                "held_out": value - 0.01,
                "over_default": {"mean": value - 0.53, "low": value - 0.54, "high": value - 0.52},
                "over_best": {"mean": value - 0.56, "low": value - 0.57, "high": value - 0.55},
                "params": {"fusion.k": 60},
                "config": {"runs": ["dense"]},
                "efficient": efficient,
            }
        )

    data: dict[str, Any] = {
        "method": "tpe",
        "evaluations": 200,
        "axes": ("candidates", "seconds", "cost"),
        "points": (
            point(0, 0.5, True),
            point(10, 0.557, True),
            point(20, 0.54, False),
            point(50, 0.53, False, "default"),
            point(60, 0.56, True, "chosen"),
        ),
        "efforts": (
            RerankerEffort(
                reranker="ce",
                provider="cohere/rerank-v3.5",
                cost="ledger",
                seconds="declared",
                declared_price=2.0,
                declared_seconds=0.01,
                recorded_price=2.5,
                recorded_seconds=0.08,
                queries=100,
                calls=100,
                documents=5000,
                largest_call=50,
                at_once=8,
            ),
        ),
    }
    return ParetoFront.model_validate(data | changed)


def front_with_points(points: dict[int, dict[str, Any]], **changed: Any) -> ParetoFront:  # noqa: ANN401
    """The front with some points changed, by their depth."""
    whole = front()
    updated = tuple(p.model_copy(update=points.get(p.depth, {})) for p in whole.points)
    return whole.model_copy(update={"points": updated, **changed})
