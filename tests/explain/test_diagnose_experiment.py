"""Counts, changes and lists of a small experiment, by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.errors import UnknownNameError
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.explain.diagnosis import (
    Diagnosis,
    FailureRecord,
    diagnose_experiment,
    find_worst_failure,
)
from fusion_bench.stats.intervals import estimate_mean
from tests.diagnose_cases import EXPERIMENT, make_project
from tests.tiny import edit

Diagnose = Callable[..., Diagnosis]


@pytest.fixture
def diagnose(tmp_path: Path) -> Diagnose:
    root = make_project(tmp_path)
    parsed, source = read_experiment(root / EXPERIMENT)

    def run(**options: object) -> Diagnosis:
        return diagnose_experiment(parsed, source, folders=[root / "datasets"], **options)  # type: ignore[arg-type]

    return run


def test_counts_of_every_system(diagnose: Diagnose) -> None:
    [collection] = diagnose().collections
    counts = {
        system.name: [(c.failures, c.exposed) if c.not_applicable is None else None for c in counts]
        for system in collection.systems
        for counts in [system.counts]
    }
    assert counts == {
        "plain": [(3, 4), None, (1, 5), (1, 4)],
        "question": [(0, 4), None, (1, 5), (0, 4)],
        "buried": [(3, 4), (4, 4), (1, 5), (0, 0)],
        "keyword": [None, None, (1, 5), (1, 4)],
    }
    assert (collection.queries, collection.groups, collection.relevant) == (5, 3, 5)
    assert collection.missed_by_all == 1


def test_what_a_system_cures_and_causes(diagnose: Diagnose) -> None:
    [collection] = diagnose().collections
    dilution = collection.system("question").count("dilution").change
    assert dilution is not None
    assert (dilution.cures, dilution.causes, dilution.cures_without_gain) == (3, 0, 0)
    assert (dilution.improved_queries, dilution.worsened_queries, dilution.queries) == (3, 0, 5)
    groups = np.array([0, 0, 1, 1, 2])
    mean = estimate_mean(np.array([-1.0, -1.0, -1.0, 0.0, 0.0]), groups)
    assert (dilution.difference, dilution.low, dilution.high) == (mean.mean, mean.low, mean.high)


def test_a_baseline_without_a_reranker_buries_nothing(diagnose: Diagnose) -> None:
    [collection] = diagnose().collections
    plain, buried = (collection.system(name).count("burial") for name in ("plain", "buried"))
    assert plain.change is None
    assert plain.not_applicable is not None
    assert buried.change is not None
    assert (buried.change.cures, buried.change.causes, buried.change.difference) == (0, 4, 0.8)
    assert collection.system("keyword").count("burial").change is None


STAGED = """\
  buried:
    runs: [inner]
    stages:
      inner:
        runs: [dense, bm25]
        fusion: {method: rrf, k: 1, weights: {bm25: 3}}
        blend: {method: replace, reranker: r, missing: below}
"""


@pytest.mark.parametrize("blend", ["", "    blend: {method: linear, reranker: r, beta: 0}\n"])
def test_a_reranker_in_a_stage_buries(blend: str, tmp_path: Path, diagnose: Diagnose) -> None:
    [plain] = diagnose().collections
    file = tmp_path / EXPERIMENT
    text = file.read_text()
    begin, end = text.index("  buried:"), text.index("  keyword:")
    file.write_text(text[:begin] + STAGED + blend + text[end:])
    parsed, source = read_experiment(file)
    [staged] = diagnose_experiment(parsed, source, folders=[tmp_path / "datasets"]).collections
    counts = [collection.system("buried").count("burial") for collection in (plain, staged)]
    for name in ("not_applicable", "failures", "exposed", "queries", "behind_relevant", "tied"):
        assert getattr(counts[0], name) == getattr(counts[1], name), name


def test_without_a_list_of_role_question_no_dilution_is_compared(diagnose: Diagnose) -> None:
    [collection] = diagnose().collections
    count = collection.system("keyword").count("dilution")
    assert (count.not_applicable or "").endswith("role question")
    assert (count.change, count.worst) == (None, ())


@pytest.mark.parametrize(("rel", "relevant"), [(1, 5), (2, 0)])
def test_a_document_below_the_relevant_grade_can_invert(
    tmp_path: Path, rel: int, relevant: int
) -> None:
    root = make_project(tmp_path)
    edit(root, "datasets/mine/dataset.yaml", "runs:", f"binary_relevance: {rel}\nruns:")
    parsed, source = read_experiment(root / EXPERIMENT)
    [collection] = diagnose_experiment(parsed, source, folders=[root / "datasets"]).collections
    assert collection.relevant == relevant
    assert collection.system("plain").count("inversion").not_applicable is None
    assert collection.missed_by_all == int(relevant > 0)


def test_without_a_document_judged_not_relevant_nothing_inverts(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    edit(root, "datasets/mine/qrels.txt", "q1 0 b 0\n", "q1 0 elsewhere 0\n")
    parsed, source = read_experiment(root / EXPERIMENT)
    [collection] = diagnose_experiment(parsed, source, folders=[root / "datasets"]).collections
    for system in collection.systems:
        count = system.count("inversion")
        assert (count.not_applicable or "").endswith("not relevant")
        assert count.change is None


def test_a_cure_that_moves_nothing_up_is_counted(diagnose: Diagnose) -> None:
    [collection] = diagnose().collections
    change = collection.system("buried").count("inversion").change
    assert change is not None
    assert (change.cures, change.cures_without_gain) == (1, 1)  # out of the top 10


def test_the_worst_come_first_and_so_many_are_listed(diagnose: Diagnose) -> None:
    [collection] = diagnose(top=2).collections
    count = collection.system("buried").count("burial")
    assert (count.failures, len(count.worst)) == (4, 2)
    assert count.worst[0] == FailureRecord(
        query="q4",
        document="a",
        grade=1,
        fused_rank=1,
        rank=12,
        relevant_above=0,
        not_relevant_above=0,
        unjudged_above=11,
        is_tied=False,
        baseline_rank=1,
        is_caused=True,
    )
    misses = collection.system("buried").count("miss").worst
    assert [(m.query, m.fused_rank, m.rank, m.is_caused) for m in misses] == [
        ("q5", None, None, False)
    ]


def test_chosen_systems_and_the_baseline(diagnose: Diagnose) -> None:
    [collection] = diagnose(systems=["question"]).collections
    assert [system.name for system in collection.systems] == ["plain", "question"]
    assert collection.system("plain").count("dilution").change is None


@pytest.mark.parametrize("options", [{"systems": ["no"]}, {"dataset": "no"}])
def test_unknown_names(diagnose: Diagnose, options: dict[str, object]) -> None:
    with pytest.raises(UnknownNameError, match=r"--(system|dataset): .* 'no'"):
        diagnose(**options)


def test_the_failure_to_look_at_first(diagnose: Diagnose) -> None:
    [collection] = diagnose().collections
    worst = find_worst_failure(collection)
    assert worst is not None
    assert (worst.kind, worst.system, worst.failure.query) == ("burial", "buried", "q4")
    dilution = find_worst_failure(collection, "dilution")
    assert dilution is not None
    assert dilution.system == "buried"
    [alone] = diagnose(systems=["question"]).collections
    worst = find_worst_failure(alone)
    assert worst is not None
    assert (worst.kind, worst.system) == ("dilution", "plain")
    assert find_worst_failure(alone, "burial") is None
