"""The gate keeps its stated rate of passes at max_drop on public collections."""

import pytest

from benchmarks.studies.self_test import build_checks
from fusion_bench.gate.self_test import measure_pass_rates, split_checks
from tests.parity.collections import aligned

pytestmark = pytest.mark.parity


@pytest.mark.parametrize("collection", ["trec-dl-2019", "jqara"])
def test_every_rate_agrees(collection: str) -> None:
    checks = [
        check
        for check in build_checks(collection, aligned(collection))
        if check.pair.measure in {"nDCG@10", "RR@10"}
    ]
    tested, _ = split_checks(checks)
    rates = [*measure_pass_rates(tested, runs=200, seed=7)]
    assert f"{collection} / nDCG@10" in {rate.check for rate in rates}
    assert [rate for rate in rates if not rate.agrees] == []
