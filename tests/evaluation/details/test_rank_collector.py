"""Ranks and tops, collected while systems are measured, against the final lists one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.evaluation.assessment import assess_system
from fusion_bench.evaluation.details.relevant_ranks import (
    TOP,
    RankCollector,
    list_relevant,
    make_relevant_ranks,
)
from fusion_bench.evaluation.details.top_documents import list_top_documents
from tests.evaluation.details.cases import (
    MEASURE,
    QUERIES,
    SYSTEMS,
    Case,
    final_lists,
    make_case,
    make_system,
)

CASES = st.builds(make_case, st.integers(0, 10**6))


def collect(case: Case, config: dict[str, Any]) -> tuple[AlignedRuns, RankCollector]:
    """The runs, and what is collected while the system is measured."""
    runs = case.align()
    collector = RankCollector(runs, list_relevant(runs, case.qrels, 1))
    observe = collector.observe("s")
    assess_system(make_system(config), runs, [MEASURE], observe)
    return runs, collector


@pytest.mark.parametrize("config", SYSTEMS, ids=str)
@settings(max_examples=12, deadline=None)
@given(case=CASES)
def test_ranks_of_relevant_documents(case: Case, config: dict[str, Any]) -> None:
    runs, collected = collect(case, config)
    ranks = make_relevant_ranks(runs, collected.relevant, collected.ranks)
    expected = []
    lists = final_lists(make_system(config), runs)
    for query in runs.queries:
        for document, grade in case.judged[query].items():
            if grade > 0:
                found = [*lists[query], document]
                rank = found.index(document) + 1
                expected.append((query, document, grade, rank if rank < len(found) else 0))
    rows = zip(
        (ranks.queries[q] for q in ranks.query),
        ranks.documents,
        ranks.grades.tolist(),
        ranks.system_ranks[0].tolist(),
        strict=True,
    )
    assert sorted(rows) == sorted(expected)


@settings(max_examples=25, deadline=None)
@given(case=CASES)
def test_ranks_in_the_sources(case: Case) -> None:
    runs = case.align()
    ranks = make_relevant_ranks(runs, list_relevant(runs, case.qrels, 1), {})
    assert ranks.system_ranks.shape == (0, len(ranks.documents))
    for name, row in zip(ranks.sources, ranks.source_ranks.tolist(), strict=True):
        alone = final_lists(make_system({"runs": [name]}), runs)
        for q, document, rank in zip(ranks.query.tolist(), ranks.documents, row, strict=True):
            found = [*alone[runs.queries[q]], document]
            assert rank == (found.index(document) + 1) % len(found)


@pytest.mark.parametrize("config", SYSTEMS, ids=str)
@settings(max_examples=12, deadline=None)
@given(case=CASES)
def test_top_documents_are_the_beginnings_of_the_lists(case: Case, config: dict[str, Any]) -> None:
    runs, collected = collect(case, config)
    top = list_top_documents(make_system(config), runs, collected.tops["s"])
    lists = final_lists(make_system(config), runs)
    expected = [
        (query, rank, document, case.judged[query].get(document))
        for query in runs.queries
        for rank, document in enumerate(lists[query][:TOP], start=1)
    ]
    columns = top._table_columns()
    assert (
        list(zip(*(columns[name] for name in ("query", "rank", "document", "grade")), strict=True))
        == expected
    )
    np.testing.assert_allclose(np.nansum(top.terms, axis=0), top.scores, rtol=1e-12, atol=1e-12)
    unjudged = [sum(grade is None for q, *_, grade in expected if q == query) for query in QUERIES]
    assert collected.unjudged["s"].tolist() == unjudged


def test_a_part_of_the_queries_keeps_its_rows() -> None:
    runs, collected = collect(make_case(3), SYSTEMS[4])
    ranks = make_relevant_ranks(runs, collected.relevant, collected.ranks)
    top = list_top_documents(make_system(SYSTEMS[4]), runs, collected.tops["s"])
    keep = np.array([True, False, False, True, False])
    for whole in (ranks, top):
        frame, part = whole.to_pandas(), whole.keep_queries(keep).to_pandas()
        chosen = frame[frame["query"].isin(["q0", "q3"])].reset_index(drop=True)
        assert 0 < len(part) < len(frame)
        assert part.equals(chosen)
