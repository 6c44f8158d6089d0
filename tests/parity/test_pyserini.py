"""The fusion methods that pyserini shares give the results that pyserini's own tests expect."""

from pathlib import Path
from typing import Any

import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.run import Run
from fusion_bench.methods.fuse import fusions
from tests.parity.data import parity_data

pytestmark = pytest.mark.parity


def rows(path: Path) -> list[tuple[str, str, int, float]]:
    fields = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    return [(query, doc, int(rank), float(score)) for query, _, doc, rank, score, _ in fields]


def run(path: Path) -> Run:
    queries, documents, ranks, scores = zip(*rows(path), strict=True)
    read_options = ReadOptions(rank_from="column")  # the second run's ranks are 1 and 3
    return Run.from_rows(
        path.stem, queries, documents, scores, ranks=ranks, read_options=read_options
    )


@pytest.fixture(scope="module")
def folder() -> Path:
    return parity_data("pyserini-fusion")


@pytest.fixture(scope="module")
def runs(folder: Path) -> AlignedRuns:
    two = [run(folder / f"simple_trec_run_fusion_{n}.txt") for n in (1, 2)]
    return align(Qrels.from_dict({q: {"d": 1} for q in "123"}), two)


@pytest.mark.parametrize(
    ("expected", "fusion", "factor"),
    [
        ("simple_trec_run_rrf_verify.txt", {"method": "rrf", "k": 60}, 1),
        ("simple_trec_run_average_verify.txt", {"method": "weighted_score", "missing": "zero"}, 1),
        (
            "simple_trec_run_interpolation_verify.txt",
            {
                "method": "weighted_score",
                "missing": "zero",
                "weights": {"simple_trec_run_fusion_1": 0.4, "simple_trec_run_fusion_2": 0.6},
            },
            1,
        ),
        # pyserini adds the two normalized lists where we take their mean
        (
            "simple_fusion_normalize_verify.txt",
            {"method": "weighted_score", "missing": "zero", "normalize": "min_max"},
            2,
        ),
    ],
)
def test_fusion(
    folder: Path, runs: AlignedRuns, expected: str, fusion: dict[str, Any], factor: int
) -> None:
    scores = fusions.build(fusion).fuse(runs)
    found = {
        (runs.queries[q], runs.vocabulary[d]): factor * float(x)
        for q, d, x in zip(runs.query_index, runs.documents, scores, strict=True)
    }
    wanted = {(query, doc): score for query, doc, _, score in rows(folder / expected)}
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12)
