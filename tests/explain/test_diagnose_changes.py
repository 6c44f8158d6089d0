"""What is cured and caused, against sets and loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from fusion_bench.evaluation.details.relevant_ranks import RelevantDocuments
from fusion_bench.explain.diagnosis import describe_system
from fusion_bench.explain.failures import KINDS, LAST, DiagnosedSystem, Failures, Scope
from fusion_bench.stats.intervals import estimate_mean

QUERIES = ("q0", "q1", "q2", "q3")
OWNERS = np.array([0, 0, 0, 1, 1, 3, 3])
SIZE = len(OWNERS)
GROUPS = np.array([0, 0, 1, 2])
RANKS = st.lists(st.sampled_from([1, 2, 7, 12, LAST]), min_size=SIZE, max_size=SIZE)
FLAGS = st.lists(st.booleans(), min_size=SIZE, max_size=SIZE)
BY_QUERY = st.lists(st.booleans(), min_size=len(QUERIES), max_size=len(QUERIES))


@st.composite
def systems(draw: DrawFn, name: str) -> DiagnosedSystem:
    has_question = np.array(draw(BY_QUERY))
    failed, nothing = np.array(draw(FLAGS)), np.zeros(SIZE, dtype=np.int64)
    failed &= has_question[OWNERS]  # a dilution needs a list of role question
    failures = Failures(failed, failed, np.zeros_like(failed), nothing, nothing, nothing)
    fused, final, returned = (np.array(draw(RANKS)) for _ in range(3))
    return DiagnosedSystem(
        name, dict.fromkeys(KINDS, failures), {}, fused, final, returned, has_question
    )


def make_scope() -> Scope:
    names = tuple(f"d{m}" for m in range(SIZE))
    grades = np.ones(SIZE, dtype=np.int64)
    relevant = RelevantDocuments(OWNERS, names, grades, np.arange(SIZE))
    return Scope(QUERIES, GROUPS, relevant, 0.1, top=3)


@settings(max_examples=30)
@given(system=systems("new"), baseline=systems("base"))
def test_cures_and_causes_are_differences_of_sets(
    system: DiagnosedSystem, baseline: DiagnosedSystem
) -> None:
    change = describe_system(system, baseline, make_scope()).count("dilution").change
    queries = [q for q in range(4) if system.has_question[q] and baseline.has_question[q]]
    if not queries:
        assert change is None
        return
    now, before = (
        {m for m in range(SIZE) if item.failures["dilution"].is_failed[m] and OWNERS[m] in queries}
        for item in (system, baseline)
    )
    assert change is not None
    assert (change.cures, change.causes) == (len(before - now), len(now - before))
    risen = {m for m in range(SIZE) if system.returned[m] < baseline.returned[m]}
    fallen = {m for m in range(SIZE) if system.returned[m] > baseline.returned[m]}
    assert change.cures_without_gain == len(before - now - risen)
    assert change.causes_without_loss == len(now - before - fallen)
    differences = [
        sum(OWNERS[m] == q for m in now) - sum(OWNERS[m] == q for m in before) for q in queries
    ]
    assert change.improved_queries == sum(d < 0 for d in differences)
    assert change.worsened_queries == sum(d > 0 for d in differences)
    mean = estimate_mean(np.array(differences, dtype=float), GROUPS[queries], alpha=0.1)
    assert (change.difference, change.queries) == (mean.mean, len(queries))
    ends = [None if np.isnan(end) else end for end in (mean.low, mean.high)]
    assert [change.low, change.high] == ends


@settings(max_examples=30)
@given(system=systems("new"), baseline=systems("base"))
def test_the_list_begins_with_the_worst(system: DiagnosedSystem, baseline: DiagnosedSystem) -> None:
    scope = make_scope()
    for kind in ("dilution", "burial"):
        count = next(c for c in describe_system(system, baseline, scope).counts if c.kind == kind)
        ranks = system.fused if kind == "dilution" else system.final
        failed = [m for m in range(SIZE) if system.failures["dilution"].is_failed[m]]
        worst = sorted(failed, key=lambda m: (-ranks[m], m))[: scope.top]
        assert [failure.document for failure in count.worst] == [f"d{m}" for m in worst]
        assert count.failures == len(failed)
        for failure, m in zip(count.worst, worst, strict=True):
            assert failure.rank == (None if system.returned[m] == LAST else system.returned[m])
            if kind == "burial":
                assert failure.is_caused == (not baseline.failures["burial"].is_failed[m])
