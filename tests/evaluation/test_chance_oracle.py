"""The part of an oracle that is the maximum of noise."""

import numpy as np
import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.evaluation.results import DisturbedRanking, measure_chance
from fusion_bench.experiment.system import System
from fusion_bench.measures import compute_measures, parse_measure
from fusion_bench.ranking.system_ranking import SystemRanking, rank_candidates

QUERIES, DOCUMENTS = 200, 30
MEASURE = parse_measure("nDCG@10")
#: Every rank counts, as unjudged documents are left out.
READS_ALL = MEASURE.with_judged_only()


def make_noise(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, QUERIES * DOCUMENTS))


@pytest.fixture(scope="module")
def judged() -> SystemRanking:
    generator = np.random.default_rng(3)
    grades = {
        f"q{q}": {f"d{d}": int(generator.random() < 0.2) for d in range(DOCUMENTS)}
        for q in range(QUERIES)
    }
    lists = [
        {
            query: {doc: grade + generator.normal() for doc, grade in judged.items()}
            for query, judged in grades.items()
        }
        for _ in range(2)
    ]
    qrels = Qrels.from_dict({q: {**judged, "d0": 1} for q, judged in grades.items()})
    runs = align(qrels, [Run.from_dict(name, each) for name, each in zip("ab", lists, strict=True)])
    return rank_candidates(System(name="fixed", runs=("a", "b")), runs)


def evaluate(judged: SystemRanking, strength: float, seed: int) -> np.ndarray:
    fixed = judged
    disturbed = DisturbedRanking(fixed, MEASURE)
    noise = strength * make_noise(5, seed)
    ranks = [disturbed.rank(row) for row in noise]
    return np.stack([compute_measures([MEASURE], fixed.runs, row)[0] for row in ranks])


def test_the_disturbed_ranks_are_those_of_the_slow_definition(
    judged: SystemRanking,
) -> None:
    fixed = judged
    disturbed = DisturbedRanking(fixed, READS_ALL)
    [noise] = make_noise(1, 4)
    ranks = disturbed.rank(0.7 * noise)
    for start, end in zip(fixed.runs.offsets[:-1], fixed.runs.offsets[1:], strict=True):
        scores = fixed.scores[start:end]
        scores = (scores - scores.mean()) / scores.std() + 0.7 * noise[start:end]
        order = np.argsort(-scores).tolist()
        assert [int(ranks[start + row]) for row in order] == list(range(1, end - start + 1))
    assert (disturbed.rank(0.0 * noise) == fixed.ranks_before_cut).all()


def test_relevant_documents_have_the_ranks_that_they_have_among_all(judged: SystemRanking) -> None:
    [noise] = 0.7 * make_noise(1, 4)
    ranks, some = (DisturbedRanking(judged, each).rank(noise) for each in (READS_ALL, MEASURE))
    relevant = judged.runs.grades > 0
    assert (some[relevant] == ranks[relevant]).all()
    assert 0 < (some > 0).mean() < 1


def test_an_oracle_of_noise_is_all_chance(judged: SystemRanking) -> None:
    fixed = judged
    variants = evaluate(judged, 0.8, seed=11)
    oracle = float(variants.max(axis=0).mean())
    chance = measure_chance([DisturbedRanking(fixed, MEASURE)], variants, MEASURE)
    assert chance == pytest.approx(oracle, abs=0.015)
    assert chance > variants.mean() + 0.05


def test_an_oracle_that_knows_something_is_above_chance(
    judged: SystemRanking,
) -> None:
    fixed = judged
    weak = evaluate(judged, 8.0, seed=12)[:4]
    best = np.ones((1, QUERIES))
    good = np.vstack([weak, np.where(np.arange(QUERIES) % 2 == 0, best, weak[:1])])
    chance = measure_chance([DisturbedRanking(fixed, MEASURE)], good, MEASURE)
    assert good.max(axis=0).mean() > chance + 0.1
