"""Agreement of judges as it is published."""

import pytest

from fusion_bench.io.load_records import load_qrels
from fusion_bench.stats.agreement import make_weights, measure_kappa, pair_grades
from tests.parity.data import parity_data

pytestmark = pytest.mark.parity


@pytest.mark.parametrize(
    ("first", "second", "graded", "binary"),
    [
        ("codex", "qwen", 0.301, 0.567),
        ("codex", "ministral", 0.211, 0.394),
        ("ministral", "qwen", 0.374, 0.558),
    ],
)
def test_published_agreement_of_the_judges_of_trec_rag_2025(
    first: str, second: str, graded: float, binary: float
) -> None:
    folder = parity_data("rag25-dev-judges")
    pairs = pair_grades(*(load_qrels(folder / f"{name}.qrels.gz") for name in (first, second)))
    kappa = measure_kappa(pairs.counts, make_weights(pairs.grades, "none"))
    assert kappa.value == pytest.approx(graded, abs=5e-4)
    assert kappa.low < kappa.value < kappa.high
    two = measure_kappa(pairs.binary_counts(2), make_weights((0, 1), "none"))
    assert two.value == pytest.approx(binary, abs=5e-4)
