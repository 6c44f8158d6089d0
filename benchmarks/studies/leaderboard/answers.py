"""What the stored results say to four questions, in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from benchmarks.studies.leaderboard.evaluate import AVERAGE_PRECISION
from benchmarks.studies.leaderboard.methods import BASELINE, MEASURE
from benchmarks.studies.leaderboard.results import CollectionResults
from benchmarks.studies.leaderboard.rows import CONSTANTS, CONVEX, TUNED_PAIR, k_name, reranked_name
from benchmarks.studies.leaderboard.tuned_family import adjust_for_choice
from fusion_bench.stats.comparison import BETTER, WORSE, Comparison
from fusion_bench.stats.comparison_family import ComparedValues, compare_family, decide_fusion
from fusion_bench.stats.intervals import MeanEstimate

#: MAP by k: Cormack, Clarke and Büttcher, SIGIR 2009, Table 1 (30 lists, TREC topics 351–400).
CORMACK: Final[Mapping[int, float]] = {
    0: 0.2072,
    10: 0.2123,
    20: 0.2134,
    30: 0.2139,
    40: 0.2138,
    50: 0.2144,
    60: 0.2145,
    70: 0.2146,
    80: 0.2147,
    90: 0.2145,
    100: 0.2142,
    500: 0.2098,
}
#: Where the published curve is flat.
FLAT: Final = tuple(k for k in CONSTANTS if 20 <= k <= 100)

Results = Sequence[CollectionResults]


def answer_convex(results: Results) -> Iterator[str]:
    """Does convex fusion beat RRF once both are tuned?"""
    cells = {each.head.name: each for each in results if TUNED_PAIR in each.cells}
    if not cells:
        yield "No collection has both rows yet."
        return
    zero = "no difference"
    tables = [
        ComparedValues(
            MEASURE.name,
            {zero: np.zeros(len(each.head.queries)), TUNED_PAIR: known},
            zero,
            each.head.groups,
        )
        for each in cells.values()
        if (known := each.values(TUNED_PAIR)) is not None
    ]
    rows = [row for (row,) in compare_family(tables)]
    rows = adjust_for_choice(rows, [each.cells[TUNED_PAIR].null for each in cells.values()])
    compared = dict(zip(cells, rows, strict=True))
    better = [name for name, row in compared.items() if row.answer in BETTER]
    worse = [name for name, row in compared.items() if row.answer in WORSE]
    mean = float(np.mean([each.difference for each in compared.values()]))
    yield (
        f"Tuned convex fusion is better than tuned RRF on {_listed(better)} and worse on "
        f"{_listed(worse)}, of {len(compared)} collections (max-T over them, with flips in "
        f"which both choose anew). The mean difference over collections is {mean:+.4f}."
    )
    yield from _table(
        ("collection", "convex, tuned − rrf, tuned"),
        ((name, _cell(each)) for name, each in compared.items()),
    )


def answer_k(results: Results) -> Iterator[str]:
    """How much does k matter?"""
    curves = {each.head.name: _curve(each) for each in results}
    complete = {name: curve for name, curve in curves.items() if len(curve) == len(CONSTANTS)}
    curves = {"Cormack et al. (MAP)": dict(CORMACK), **complete}
    spans = {name: _span(curve) for name, curve in complete.items()}
    if spans:
        yield (
            f"Over k = {FLAT[0]} … {FLAT[-1]}, {AVERAGE_PRECISION} varies by "
            f"{min(spans.values()):.4f} to {max(spans.values()):.4f} on the collections here, and "
            f"by {_span(CORMACK):.4f} in the published curve."
        )
    best = {name: max(curve, key=curve.__getitem__) for name, curve in curves.items()}
    header = ("k", *curves)
    rows = ((str(k), *(f"{curve[k]:.4f}" for curve in curves.values())) for k in CONSTANTS)
    yield from _table(header, [*rows, ("best k", *(str(best[name]) for name in curves))])


def answer_reranker(results: Results) -> Iterator[str]:
    """Does fusion still matter below a strong reranker?"""
    rows, below = [], reranked_name(BASELINE)
    for each in results:
        sources = [reranked_name(name) for name in each.head.sources]
        known = [name for name in sources if name in each.cells]
        if not known or below not in each.cells:
            continue
        best = max(known, key=lambda name: each.mean(name) or 0.0)
        spreads = [_spread(each, kind) for kind in ("method", "reranked")]
        gains = (each.difference(below, best), each.difference(reranked_name(CONVEX), below))
        name = f"{each.head.name} ({each.head.reranker})"
        rows.append((name, best.partition(",")[0], *map(_cell, gains), *spreads))
    if not rows:
        yield "No collection with a reranker is finished yet."
        return
    yield (
        "The reranker orders the first 50 documents of each list. Columns: the best single source "
        "below it; RRF below it against that source; convex against RRF, both below it; and the "
        "standard deviation of the means of all fusion methods, without and with it. Intervals of "
        "these differences, and of those in the next table, are not adjusted."
    )
    header = ("collection", "best source", "rrf − source", "convex − rrf", "sd without", "sd with")
    yield from _table(header, rows)


def answer_losses(results: Results) -> Iterator[str]:
    """Where does fusion lose?"""
    rows = []
    for each in results:
        methods = [row.name for row in each.rows_of("method")]
        sources = [row.name for row in each.rows_of("source")]
        best = max(sources, key=lambda name: each.mean(name) or 0.0)
        verdict = _pays_or_loses(each, sources, methods)
        ahead = sum((each.mean(name) or 0.0) > (each.mean(best) or 0.0) for name in methods)
        gap = _cell(each.difference(BASELINE, best))
        rows.append((each.head.name, best, gap, f"{ahead} of {len(methods)}", verdict))
    losing = [row[0] for row in rows if row[-1] == "loses"]
    paying = [row[0] for row in rows if row[-1] == "pays"]
    loses = "some source is better than every untuned method"
    pays = "some untuned method is better than every source"
    yield (
        f"{_count_collections(losing, loses)} {_count_collections(paying, pays)} Each collection "
        "is a family of its own at 5 % (max-T over its methods × sources), so that one of "
        f"{len(rows)} may have either mark by chance."
    )
    header = ("collection", "best source", "rrf − source", "methods above it", "fusion")
    yield from _table(header, rows)


def _pays_or_loses(each: CollectionResults, sources: list[str], methods: list[str]) -> str:
    fusions, singles = (
        {name: values for name in names if (values := each.values(name)) is not None}
        for names in ([name for name in methods if name not in sources], sources)
    )
    return decide_fusion(fusions, singles, each.head.groups).verdict


def _curve(each: CollectionResults) -> dict[int, float]:
    means = {k: each.mean(k_name(k), AVERAGE_PRECISION) for k in CONSTANTS}
    return {k: mean for k, mean in means.items() if mean is not None}


def _span(curve: Mapping[int, float]) -> float:
    values = [curve[k] for k in FLAT]
    return max(values) - min(values)


def _spread(each: CollectionResults, kind: str) -> str:
    """Standard deviation of the means of all fusion methods."""
    methods = [row.name for row in each.rows_of("method")]
    names = methods if kind == "method" else [reranked_name(name) for name in methods]
    means = [mean for name in names if (mean := each.mean(name)) is not None]
    return f"{np.std(means):.4f}"


def _cell(value: Comparison | MeanEstimate | None) -> str:
    if value is None:
        return "–"
    mean = value.difference if isinstance(value, Comparison) else value.mean
    return f"{mean:+.4f} [{value.low:+.4f}, {value.high:+.4f}]"


def _count_collections(names: Sequence[str], what: str) -> str:
    """``On 2 collections (a, b) some source is better.``; in words of its own for none."""
    if not names:
        return f"On no collection is it shown that {what}."
    noun = "collection" if len(names) == 1 else "collections"
    return f"On {len(names)} {noun} ({', '.join(names)}) {what}."


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)} ({', '.join(names)})" if names else "none"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table, its first column text."""
    lines = [f"| {' | '.join(header)} |", f"|:--|{'--:|' * (len(header) - 1)}"]
    yield "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
