"""Values that are refused with one clear line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluation.crag import CragThresholds, judge_list
from fusion_bench.schema import DateRange, SearchWeights, normalize_scores
from fusion_bench.schema.result_records import judge_relevance

NAN = float("nan")
BAD: list[Any] = ["a"]
NONE: list[Any] = [None, 0.2]
OTHER: Any = "foo"
DAY: Any = "2024-01-03"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: judge_relevance(NAN), "given nan"),
        (lambda: normalize_scores([1.0, NAN]), "given nan"),
        (lambda: judge_list([0.5], CragThresholds(NAN, 0.3)), "given upper nan"),
        (lambda: judge_list(BAD), "given 'a'"),
        (lambda: judge_list(NONE), "given None"),
        (lambda: SearchWeights.of_type(OTHER), "unknown query type 'foo'"),
        (lambda: DateRange.model_validate({"start": "2024-01-02"}).contains(DAY), "a datetime is"),
    ],
)
def test_what_is_refused(call: Callable[[], object], says: str) -> None:
    with pytest.raises(FusionBenchError, match=says):
        call()
