"""The page of the leaderboard, and its picture, from the stored results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.studies.leaderboard.answers import (
    answer_convex,
    answer_k,
    answer_losses,
    answer_reranker,
)
from benchmarks.studies.leaderboard.methods import BASELINE, MEASURE
from benchmarks.studies.leaderboard.picture import draw_heat_map
from benchmarks.studies.leaderboard.results import (
    COMPARED,
    ORACLES,
    CollectionResults,
    count_answers,
    mean_rank,
    row_names,
)
from fusion_bench.report.plots import render_png
from fusion_bench.stats.comparison import BETTER, WORSE
from fusion_bench.util.files import write_atomic

PICTURE: Final = "leaderboard.png"
TITLES: Final = {
    "source": "Sources alone",
    "method": "Fusion methods at their defaults",
    "tuned": "Fusion methods, tuned out of fold",
    "learned": "Trained and learned fusion, fitted out of fold",
    "policy": "Policies by query",
    "engine": "Engines at their defaults",
    "engine, whole lists": "Engines without their default windows",
    "floor": "Floor",
}
MARKS: Final[dict[str, str]] = {**dict.fromkeys(BETTER, "▲"), **dict.fromkeys(WORSE, "▼")}
QUESTIONS: Final = {
    "Does convex fusion beat RRF once both are tuned?": answer_convex,
    "How much does k matter?": answer_k,
    "Does fusion still matter below a strong reranker?": answer_reranker,
    "Where does fusion lose?": answer_losses,
}


def write_page(results: Sequence[CollectionResults], folder: Path) -> Path:
    """Write ``leaderboard.md`` and its picture.

    Args:
        results: At least one collection.
        folder: Where both go.
    """
    write_atomic(folder / PICTURE, render_png(draw_heat_map(results)))
    text = "\n\n".join(_blocks(results)) + "\n"
    return write_atomic(folder / "leaderboard.md", text.encode())


def _blocks(results: Sequence[CollectionResults]) -> Iterator[str]:
    budget = results[0].head.budget
    yield "# Leaderboard"
    yield (
        f"Every fusion method on {len(results)} collections, in {MEASURE.name}. `make leaderboard` "
        "renews this page from its stored results. Every list is cut at rank 100."
    )
    yield (
        f"A cell is the mean difference from `{BASELINE}` (k = 60) with its interval, paired by "
        "query and by group where the collection has groups. The intervals of a collection hold "
        "95 % together (max-T over all its rows). ▲ and ▼: better and worse; no mark: not shown, "
        f"or unjudged documents decide. Tuned rows choose among {budget.trials} random settings "
        f"and the default, in {budget.folds} folds: each query counts with parameters that the "
        "other folds chose. Their marks and intervals also need the flip test of that procedure "
        f"(max |t| over the tuned rows; in each of {budget.flips:,} flips every row chooses anew). "
        "Wins "
        "and losses count ▲ and ▼; the mean rank is over the collections that have the row."
    )
    yield f"![Differences from {BASELINE}, a row a system, a column a collection]({PICTURE})"
    for question, answer in QUESTIONS.items():
        yield f"## {question}"
        yield from answer(results)
    for kind in COMPARED:
        if names := row_names(results, kind):
            yield f"## {TITLES[kind]}"
            yield "\n".join(_table(results, names))
    yield "## Ceilings"
    yield "The best source and the best untuned method, chosen for each query by its judgments."
    yield "\n".join(_table(results, list(ORACLES)))
    yield "## Collections"
    yield "\n".join(_collection_lines(results))


def _table(results: Sequence[CollectionResults], names: Sequence[str]) -> Iterator[str]:
    header = ("system", *(each.head.name for each in results), "wins", "losses", "mean rank")
    yield f"| {' | '.join(header)} |"
    yield f"|:--|{'--:|' * (len(header) - 1)}"
    for name in names:
        cells = [_format_cell(each, name) for each in results]
        counts = [str(count_answers(results, name, BETTER))]
        counts.append(str(count_answers(results, name, WORSE)))
        rank = mean_rank(results, name)
        last = [*counts, f"{rank:.1f}"] if rank is not None and name != BASELINE else ["", "", ""]
        yield f"| {' | '.join([name, *cells, *last])} |"


def _format_cell(each: CollectionResults, name: str) -> str:
    if name == BASELINE:
        return f"{each.mean(BASELINE):.4f}"
    comparison = each.comparisons.get(each.resolve(name))
    estimate = each.difference(name, BASELINE) if comparison is None else None
    mark = MARKS.get(each.answer(name) or "", "")
    if comparison is not None:
        mean, low, high = comparison.difference, comparison.low, comparison.high
    elif estimate is not None:
        mean, low, high = estimate.mean, estimate.low, estimate.high
    else:
        return "–"
    text = f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"
    return f"{text} {mark}".strip()


def _collection_lines(results: Sequence[CollectionResults]) -> Iterator[str]:
    yield f"| collection | queries | fused lists, each with its {MEASURE.name} | reranker | rows |"
    yield "|:--|--:|:--|:--|--:|"
    for each in results:
        head = each.head
        sources = [f"{name} {each.mean(name) or 0.0:.4f}" for name in head.sources]
        yield (
            f"| {head.name} | {len(head.queries)} | {', '.join(sources)} | "
            f"{head.reranker or '–'} | {len(each.cells)} of {len(head.rows)} |"
        )
