"""The page of a leaderboard, its tables and its pictures, from the stored cells alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.leaderboard.answers import QUESTIONS, QuestionAnswer, Results, format_difference
from benchmarks.leaderboard.evaluate import LIST_DEPTH
from benchmarks.leaderboard.records import FILE, Leaderboard, encode_record
from benchmarks.leaderboard.results import CollectionResults, list_results
from benchmarks.leaderboard.rows import BASELINE, MEASURE
from fusion_bench.errors import DataError
from fusion_bench.report.plots._base import BLUE, GRAY, open_drawing, plot_text, render_png
from fusion_bench.stats.comparison import BETTER, WORSE
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.leaderboard.answers import Bar

PAGE, TABLES = "leaderboard.md", "leaderboard-tables.md"
TITLES: Final = {
    "source": "Lists alone",
    "chosen": "Chosen out of fold",
    "method": "Fusion methods at their defaults",
    "tuned": "Fusion methods, tuned out of fold",
    "learned": "Trained and learned fusion, fitted out of fold",
    "engine": "Engines at their defaults",
    "engine, whole lists": "Engines without their default windows",
    "floor": "Floor",
}


def render_pages(leaderboard: Leaderboard) -> dict[str, bytes]:
    """The file with all cells, the page, its tables, and a picture a question, by name.

    Args:
        leaderboard: Of one collection or more.

    Raises:
        DataError: None has a finished baseline.
    """
    results = list_results(leaderboard)
    if not results:
        raise DataError(f"no collection has a finished row {BASELINE!r}, which all are compared to")
    answers = {title: ask(results, leaderboard.clusters) for title, ask in QUESTIONS.items()}
    files = {
        FILE: encode_record(leaderboard),
        PAGE: _join(_page_blocks(leaderboard, results, answers)),
        TABLES: _join(_table_blocks(results, answers)),
    }
    for title, answer in answers.items():
        if answer.bars:
            files[picture_name(title)] = render_png(_draw_effects(title, answer.bars))
    return files


def picture_name(title: str) -> str:
    """File of the picture of a question."""
    return f"leaderboard-{_anchor(title)}.png"


def _anchor(title: str) -> str:
    return re.sub("[^a-z0-9 ]", "", title.lower()).replace(" ", "-")


def _join(blocks: Iterator[str]) -> bytes:
    return ("\n\n".join(blocks) + "\n").encode()


def _page_blocks(
    leaderboard: Leaderboard, results: Results, answers: dict[str, QuestionAnswer]
) -> Iterator[str]:
    yield "# Leaderboard"
    yield from _limits(leaderboard, results)
    yield "\n".join(
        f"{number}. **{title}** {answer.sentence} ([table]({TABLES}#{_anchor(title)}))"
        for number, (title, answer) in enumerate(answers.items(), start=1)
    )
    for title, answer in answers.items():
        if answer.bars:
            yield f"## {title}"
            yield f"![{title}]({picture_name(title)})"
    yield "## Collections"
    yield _table(*_collection_table(results))


def _limits(leaderboard: Leaderboard, results: Results) -> Iterator[str]:
    budget = results[0].head.budget
    trials = " or ".join(map(str, sorted({each.head.budget.trials for each in results})))
    left_out = [each.head.name for each in results if not each.is_scored]
    partly = [
        f"{name} of {each.head.name}"
        for each in results
        if each.is_scored
        for name in each.ranked_lists
    ]
    count = pluralize(len(results), "collection")
    text = (
        f"{count}, in {MEASURE.name}, each list cut at rank {LIST_DEPTH}. They are what was at "
        "hand, no sample of all collections: the interval for a new collection holds for one that "
        "is like these. Other measures, depths and latency were not asked."
    )
    if left_out:
        text += (
            f" The lists of {', '.join(left_out)} hold ranks, but for one list at most: methods "
            "that use scores are functions of the rank there, and answers about score fusion leave "
            "these collections out."
        )
    if partly:
        text += f" These lists hold ranks too, beside two or more with scores: {', '.join(partly)}."
    if leaderboard.clusters:
        groups: dict[str, list[str]] = {}
        for name, cluster in sorted(leaderboard.clusters.items()):
            groups.setdefault(cluster, []).append(name)
        text += (
            " Collections that resemble each other count as one effect, each of these groups: "
            f"{'; '.join(', '.join(names) for names in groups.values())}."
        )
    yield text
    yield (
        f"Tuned rows choose among {trials} random settings and the default, in "
        f"{budget.folds} folds: each query counts with what the other folds chose. Intervals of "
        "differences between two choices out of fold hold together over collections, all others "
        "with those of their kind on the same collection. Means over collections have those of "
        "Hartung and Knapp, each for itself but for those of all k together, and leave out "
        f"collections on which no query differs. fusion-bench {leaderboard.version}; every cell is "
        "in the `leaderboard.json` that the command writes."
    )


def _collection_table(results: Results) -> tuple[Sequence[str], list[Sequence[str]]]:
    header = (
        *("collection", "queries", "groups", "lists", "depth", "scores or ranks", "judged by"),
        *("judgments", "Judged@10 of the best fusion", "reranker"),
    )
    rows: list[Sequence[str]] = [
        (
            each.head.name,
            str(len(each.head.queries)),
            str(len(set(each.head.groups))),
            ", ".join(source.name for source in each.head.lists),
            str(max(source.depth for source in each.head.lists)),
            _describe_scores(each),
            each.head.judge,
            each.head.judgments,
            f"{each.judged:.1%}",
            each.head.reranker or "–",
        )
        for each in results
    ]
    return header, rows


def _describe_scores(each: CollectionResults) -> str:
    ranked = each.ranked_lists
    if len(ranked) == len(each.head.lists):
        return "ranks"
    return f"scores; ranks: {', '.join(ranked)}" if ranked else "scores"


def _table_blocks(results: Results, answers: dict[str, QuestionAnswer]) -> Iterator[str]:
    yield "# Tables of the leaderboard"
    yield (
        "▲ and ▼: better and worse; no mark: not shown, or unjudged documents decide. Systems with "
        "equal values on every collection share a row. The mean rank is given to rows that every "
        "collection has. (ranks): the lists hold ranks, so that score methods are functions of the "
        "rank there."
    )
    for title, answer in answers.items():
        yield f"## {title}"
        yield answer.sentence
        if answer.rows:
            yield _table(answer.header, answer.rows)
    for kind, title in TITLES.items():
        if names := merge_equal(results, kind):
            yield f"## {title}"
            yield _table(*_system_table(results, names))


def merge_equal(results: Results, kind: str) -> list[list[str]]:
    """Names of the rows of a kind, those of equal values on every collection together."""
    equal: dict[str, list[str]] = {}
    for name in dict.fromkeys(row.name for each in results for row in each.rows_of(kind)):
        cells = (each.cells.get(name) for each in results)
        key = repr([None if cell is None else cell.values for cell in cells])
        equal.setdefault(key, []).append(name)
    return list(equal.values())


def _system_table(
    results: Results, names: Sequence[Sequence[str]]
) -> tuple[Sequence[str], list[Sequence[str]]]:
    """A row each group of equal systems, best mean rank first, then by name."""
    collections = (each.head.name + ("" if each.is_scored else " (ranks)") for each in results)
    header = ("system", *collections, "better", "worse", "mean rank")
    ranks = {name: _mean_rank(results, name) for name, *_ in names}
    ordered = sorted(names, key=lambda group: (ranks[group[0]], group[0]))
    return header, [_system_row(results, group, ranks[group[0]]) for group in ordered]


def _system_row(results: Results, group: Sequence[str], rank: float) -> Sequence[str]:
    name, label = group[0], " = ".join(group)
    if name == BASELINE:
        return [label, *(f"{each.mean(BASELINE):.4f}" for each in results), "", "", ""]
    judged = [each.judge(name) for each in results]
    answers = [None if row is None else row.answer for row in judged]
    counts = (sum(answer in kinds for answer in answers) for kinds in (BETTER, WORSE))
    shown = f"{rank:.1f}" if np.isfinite(rank) else "–"
    return [label, *map(format_difference, judged), *map(str, counts), shown]


def _mean_rank(results: Results, name: str) -> float:
    """Mean of its ranks among all compared rows; infinite where a collection lacks it."""
    ranks = [each.ranks.get(name, np.inf) for each in results]
    return float(np.mean(ranks))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"|:--|{'--:|' * (len(header) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _draw_effects(title: str, bars: Sequence[Bar]) -> Figure:
    """A row an effect, in the order given; 0 is marked.

    Args:
        title: The question.
        bars: At least one; an end that is NaN is not drawn.
    """
    with open_drawing(1.2 + 0.24 * len(bars)) as (drawing, (axes,)):
        drawing.suptitle(title)
        rows = np.arange(len(bars))
        ends = np.array([[bar.mean - bar.low, bar.high - bar.mean] for bar in bars]).T
        means = [bar.mean for bar in bars]
        axes.axvline(0, color=GRAY, lw=0.8)
        axes.errorbar(means, rows, xerr=np.nan_to_num(ends), fmt="o", color=BLUE, ms=4, lw=1.2)
        axes.set_yticks(rows, [plot_text(bar.name) for bar in bars])
        axes.invert_yaxis()
        axes.set_xlabel("difference in nDCG@10, with its 95 % interval")
    return drawing
