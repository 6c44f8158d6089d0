"""Overlap of sources, against loops over sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.evaluation.details.relevant_ranks import (
    SourceOverlap,
    list_relevant,
    make_relevant_ranks,
    measure_overlap,
)
from tests.evaluation.details.cases import SOURCES, Case, final_lists, make_case, make_system


def overlap_of(case: Case, depth: int) -> SourceOverlap:
    runs = case.align()
    ranks = make_relevant_ranks(runs, list_relevant(runs, case.qrels, 1), {})
    return measure_overlap(runs, ranks, depth)


@settings(max_examples=25, deadline=None)
@given(st.builds(make_case, st.integers(0, 10**6)), st.integers(1, 12))
def test_overlap(case: Case, depth: int) -> None:
    found = overlap_of(case, depth)
    runs = case.align()
    lists = {name: final_lists(make_system({"runs": [name]}), runs) for name in SOURCES}
    relevant = {
        (query, document)
        for query in runs.queries
        for document, grade in case.judged[query].items()
        if grade > 0
    }
    assert found.relevant == len(relevant)
    for a, name in enumerate(SOURCES):
        hits = {(q, d) for q, d in relevant if d in lists[name][q]}
        others = {(q, d) for q, d in hits for o in SOURCES if o != name and d in lists[o][q]}
        assert found.returned[a] == len(hits)
        assert found.alone[a] == len(hits - others)
        for b, other in enumerate(SOURCES):
            shares = []
            for query in runs.queries:
                first, second = lists[name][query][:depth], lists[other][query][:depth]
                if first or second:
                    common = set(first) & set(second)
                    shares.append(len(common) / max(len(first), len(second)))
            np.testing.assert_allclose(found.shared[a, b], np.mean(shares), rtol=1e-12)


def test_a_table_has_a_row_a_source() -> None:
    found = overlap_of(make_case(1), 10)
    frame = found.to_pandas()
    assert frame["source"].tolist() == list(SOURCES)
    assert frame["shared with b"].tolist() == found.shared[:, 1].tolist()
    assert found.to_dict()["alone_share"] == (found.alone / found.relevant).tolist()
    assert repr(found) == "SourceOverlap(3 sources, top 10)"
