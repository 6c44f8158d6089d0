"""Tables of a tuning run: golden/tuning-tables.txt has their cells."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.report.page import Table
from fusion_bench.report.tuning_records import IntentGain, RerankerEffort, Value
from fusion_bench.report.tuning_tables import (
    gain_table,
    parameter_table,
    pareto_table,
    per_type_table,
    tuning_tables,
)
from fusion_bench.report.tuning_texts import format_value
from fusion_bench.stats.unjudged import CompletionBounds
from tests.report.finding_cases import describe_tables
from tests.report.test_golden import FOLDER
from tests.report.tuning_cases import (
    by_type_too,
    front,
    front_with_points,
    gain,
    record,
    typed,
)

WEIGHTS = tuple(each.model_copy(update={"ratio": True}) for each in record().parameters[:3])
RESET = (record().parameters[0].model_copy(update={"reset": 0.521}), *record().parameters[1:])
INTENTS = tuple(IntentGain(intent=each.type, gain=each.gain) for each in typed())
BOUNDS = CompletionBounds(depth=10, judged=0.4, low=0.5, high=0.9)
TWO = (RerankerEffort(reranker="ce"), RerankerEffort(reranker="small"))
UNKNOWN: dict[int, dict[str, Any]] = {
    point.depth: {"cost": None, "seconds": None, "slow": None}
    for point in front().points
    if point.depth
}
DECLARED = RerankerEffort(reranker="mine", cost="declared", declared_price=1.0)
VERDICTS = ("ship", "worse", "too few queries", "keep")
TABLES: dict[str, Table | None] = {
    **{f"gains, {verdict}": gain_table(record(verdict=verdict)) for verdict in VERDICTS},
    "gains of groups": gain_table(record(held_out=gain(0.03, 0.01, 0.05, groups=50))),
    "gains without folds": gain_table(record(nested=None)),
    "parameters without folds": parameter_table(record(folds=(), importances=())),
    "parameters, one back at its default": parameter_table(record(parameters=RESET)),
    "weights as a ratio": parameter_table(record(parameters=WEIGHTS)),
    **{f"by type, {each}": per_type_table(record(), by_type_too(each)) for each in VERDICTS[::3]},
    **{
        table.title: table
        for table in tuning_tables(record(by_intent=INTENTS))
        if table.title == "Gain by intent"
    },
    "front with judged shares": pareto_table(record(), front_with_points({10: {"bounds": BOUNDS}})),
    "front of two rerankers of unknown effort": pareto_table(
        record(), front_with_points(UNKNOWN, efforts=TWO, axes=("candidates",))
    ),
    "front of declared effort": pareto_table(record(), front(efforts=(DECLARED,))),
}


def test_tables(compare_golden: Callable[[Path, str], None]) -> None:
    compare_golden(FOLDER / "tuning-tables.txt", describe_tables(TABLES))
    assert record(parameters=RESET).ablation_losses == {"fusion.k": pytest.approx(0.019)}


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (True, "yes"), (False, "no"), (12, "12"), (0.123456789, "0.1235"), ("a", "a")],
)
def test_values(value: Value, text: str) -> None:
    assert format_value(value) == text
