"""On every real collection every measure equals ir_measures', query by query, given one order.

The order is handed over as strictly decreasing scores: trec_eval compares scores as 32-bit
floats, and ir_measures' RR and RR@10 break ties in opposite ways.
"""

from functools import cache

import ir_measures
import numpy as np
import pytest

from fusion_bench import measures as measure
from fusion_bench.data.ordering import FloatArray
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_ranking import SystemRanking, rank_candidates
from tests.parity.collections import COLLECTIONS, PAIRS, aligned, qrels_of

pytestmark = pytest.mark.parity

MEASURES = [
    "nDCG",
    "nDCG@10",
    "nDCG@1000",
    "nDCG(dcg='exp-log2')@10",
    "RR",
    "RR@10",
    "RR(rel=2)@10",
    "R@10",
    "R@100",
    "R(rel=2)@100",
    "AP",
    "AP@100",
    "AP(rel=2)",
    "P@5",
    "P(rel=2)@10",
    "Success@1",
    "Success@10",
    "Judged@10",
    "ERR@20",
    "nDCG(judged_only=True)@10",
    "P(judged_only=True)@10",
]


#: gdeval prints five decimals, so no more can be asked of what goes through it.
PRINTED = {"nDCG(dcg='exp-log2')@10": 5.1e-6, "ERR@20": 5.1e-6}


@cache
def ranked(collection: str) -> SystemRanking:
    return rank_candidates(System(name="rrf", runs=PAIRS[collection]), aligned(collection))


@cache
def pseudo_scores(collection: str) -> dict[str, dict[str, float]]:
    """Query number → document → a score above 0 that falls by 1 from place to place.

    Numbers stand for the query ids because gdeval, one of ir_measures' providers, reads no others.
    """
    ranking = ranked(collection)
    runs = ranking.runs
    scored: dict[str, dict[str, float]] = {str(q): {} for q in range(len(runs.queries))}
    last = int(ranking.positions.max())
    for row in np.flatnonzero(ranking.positions > 0):
        document = runs.vocabulary[runs.documents[row]]
        place = int(ranking.positions[row])
        scored[str(runs.query_index[row])][document] = float(last + 1 - place)
    return scored


@cache
def judged(collection: str) -> dict[str, dict[str, int]]:
    return {str(q): rows for q, rows in enumerate(qrels_of(collection).to_dict().values())}


@cache
def theirs(collection: str) -> dict[str, FloatArray]:
    """Values of each measure, in the order of the queries; asked for together, once."""
    asked = {ir_measures.parse_measure(name): name for name in MEASURES}
    found: dict[str, dict[str, float]] = {name: {} for name in MEASURES}
    for m in ir_measures.iter_calc(list(asked), judged(collection), pseudo_scores(collection)):
        found[asked[m.measure]][m.query_id] = m.value
    return {
        name: np.array([values[query] for query in judged(collection)])
        for name, values in found.items()
    }


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("collection", COLLECTIONS)
@pytest.mark.filterwarnings("ignore:ast.Num is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:ast.Str is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:ast.NameConstant is deprecated:DeprecationWarning")
def test_a_measure_equals_ir_measures(collection: str, name: str) -> None:
    ranking = ranked(collection)
    [ours] = measure.compute_measures([parse_measure(name)], ranking.runs, ranking.positions)
    assert np.abs(ours - theirs(collection)[name]).max() <= PRINTED.get(name, 1e-9)
