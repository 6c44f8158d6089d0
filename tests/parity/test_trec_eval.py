"""trec_eval's own expected output, to its four decimals, per query and over all.

The command behind each file is that of trec_eval's ``make quicktest``.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import positions
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.measures import compute_measures, parse_measure
from tests.parity.data import parity_data

#: trec_eval's name → ours; a number stands behind the last underscore where there is an @.
NAMES = {
    "map": "AP",
    "map_cut": "AP@",
    "Rprec": "Rprec",
    "bpref": "Bpref",
    "recip_rank": "RR",
    "iprec_at_recall": "IPrec@",
    "P": "P@",
    "recall": "R@",
    "infAP": "infAP",
    "ndcg": "nDCG",
    "ndcg_cut": "nDCG@",
    "success": "Success@",
    "set_P": "SetP",
    "set_relative_P": "SetP(relative=True)",
    "set_recall": "SetR",
    "set_map": "SetAP",
    "set_F": "SetF",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRet(rel=1)",
}
#: What ir_measures cannot reproduce, and why.
BEYOND = {
    # pytrec_eval carries a trec_eval that rounds the number of relevant documents to be found
    # otherwise: with 474, 65 and 107 relevant ones these levels come out one document later.
    ("iprec_at_recall_0.10", None),
    ("iprec_at_recall_0.60", None),
    ("iprec_at_recall_0.90", None),
    # A query without any result has the measure's default, 0; trec_eval -c counts its qrels.
    ("num_rel", "out.test.aqc"),
    # Level 2 is not handed on to num_rel, and -1 ("pooled, not judged") crashes pytrec_eval.
    ("num_rel", "out.test.aql"),
    ("infAP", "out.test.aql"),
}
#: Sums over the queries, where all others are means.
SUMS = ("NumRet", "NumRel")
FILES = [
    # expected output, judgements, results, relevance level, every judged query counts (-c)
    ("out.test", "qrels.test", "results.test", 1, False),
    ("out.test.a", "qrels.test", "results.test", 1, False),
    ("out.test.aq", "qrels.test", "results.test", 1, False),
    ("out.test.aqc", "qrels.test", "results.trunc", 1, True),
    ("out.test.aql", "qrels.rel_level", "results.test", 2, False),
]


def ours(trec_name: str, rel: int, out: str) -> str | None:
    """Our name of a measure of trec_eval; None where ir_measures has none."""
    if (trec_name, None) in BEYOND or (trec_name, out) in BEYOND:
        return None
    if trec_name in NAMES:
        return NAMES[trec_name].replace("rel=1", f"rel={rel}")
    head, _, number = trec_name.rpartition("_")
    if not NAMES.get(head, "").endswith("@"):
        return None
    return NAMES[head] + (number if head == "iprec_at_recall" else str(int(number)))


def expected(path: Path) -> Iterator[tuple[str, str, float]]:
    for line in path.read_text().splitlines():
        name, query, value = line.split()
        if not name.startswith(("runid", "relstring")):
            yield name, query, float(value)


def columns(path: Path, *wanted: int) -> list[list[str]]:
    rows = [line.split() for line in path.read_text().splitlines()]
    return [[row[i] for row in rows] for i in wanted]


@pytest.mark.parity
@pytest.mark.parametrize(("out", "judged", "results", "rel", "every"), FILES)
def test_reproduces_trec_eval(out: str, judged: str, results: str, rel: int, every: bool) -> None:
    folder = parity_data("trec-eval")
    queries, documents, grades = columns(folder / judged, 0, 2, 3)
    qrels = Qrels.from_rows(queries, documents, [int(grade) for grade in grades])
    queries, documents, scores = columns(folder / results, 0, 2, 4)
    run = Run.from_rows("run", queries, documents, [float(score) for score in scores])
    runs = align(qrels, [run])
    returned = np.isin(runs.queries, run.queries)
    placed = positions(runs.scores[0], runs.offsets)

    compared = 0
    for name, query, value in expected(folder / out):
        known = ours(name, rel, out)
        if known is None:
            continue
        measure = parse_measure(known, binary_relevance=rel)
        values = compute_measures([measure], runs, placed)[0]
        if query == "all":
            counted = values if every else values[returned]
            found = counted.sum() if known.startswith(SUMS) else counted.mean()
        else:
            found = values[runs.queries.index(query)]
        # Printed to four decimals, so half a unit of the fourth is as near as it gets.
        assert found == pytest.approx(value, abs=0.5001e-4), (name, query)
        compared += 1
    assert compared >= 20
