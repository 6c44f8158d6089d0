"""The gate keeps its stated error rates on public collections."""

import pytest
from fusion_bench.gate.self_test.error_rates import measure_error_rates

from benchmarks.studies.self_test import build_checks
from tests.parity.collections import aligned

pytestmark = pytest.mark.parity


@pytest.mark.parametrize(("collection", "runs"), [("trec-dl-2019", 1000), ("jqara", 500)])
def test_every_rate_agrees(collection: str, runs: int) -> None:
    checks = [
        check
        for check in build_checks(collection, aligned(collection))
        if check.measure in {"nDCG@10", "RR@10"}
    ]
    result = measure_error_rates(checks, runs=runs, seed=7)
    assert [f for f in result.error_rates if not f.agrees] == []
    tried = {f.check for f in result.error_rates if f.check}
    assert f"{collection} / nDCG@10" in tried
    stated = {f.stated for f in result.error_rates if f.kind == "power"}
    assert any(abs(power - 0.8) < 1e-3 for power in stated)
