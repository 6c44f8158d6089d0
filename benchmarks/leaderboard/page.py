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
from benchmarks.table import encode_csv, format_rows, keep_columns
from fusion_bench.errors import DataError
from fusion_bench.report.plots._base import BLUE, GRAY, open_drawing, plot_text, render_png
from fusion_bench.stats.comparison import BETTER, WORSE
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.leaderboard.answers import Bar

PAGE, TABLES, ROWS = "leaderboard.md", "leaderboard-tables.md", "leaderboard-differences.csv"
#: Question → the columns of its table on the page; a CSV has all.
WIDTHS: Final = {"Which k?": 4}
#: Kinds of rows that the page of tables has; the CSV has all.
SHOWN: Final = ("method", "tuned", "learned")
#: Columns of a system over all collections.
SUMMARY: Final = ("better", "worse", "mean rank")
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
    """The page, its tables, all cells as JSON, all differences as CSV, and pictures, by name.

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
        ROWS: encode_csv(list(_list_differences(results))).encode(),
    }
    for title, answer in answers.items():
        if title in WIDTHS:
            files[table_name(title)] = encode_csv([answer.header, *answer.rows]).encode()
        if answer.bars:
            files[picture_name(title)] = render_png(_draw_effects(title, answer.bars))
    return files


def picture_name(title: str) -> str:
    """File of the picture of a question."""
    return f"leaderboard-{_anchor(title)}.png"


def table_name(title: str) -> str:
    """File of the whole table of a question."""
    return f"leaderboard-{_anchor(title)}.csv"


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
    header, rows = _collection_table(results)
    yield format_rows([header, *rows])


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
        f"Which fusion does best on {count}? Values are {MEASURE.name}, and each list is cut at "
        f"rank {LIST_DEPTH}. These collections were at hand and are no random sample, so the "
        "interval for a new collection holds for collections like these. Other measures, other "
        "depths and latency were not tested."
    )
    if left_out:
        text += (
            f" Most lists of {', '.join(left_out)} hold ranks instead of scores. There, methods "
            "that use scores depend on the rank alone, so answers about score fusion leave these "
            "collections out."
        )
    if partly:
        text += f" These lists hold ranks too, beside two or more with scores: {', '.join(partly)}."
    if leaderboard.clusters:
        groups: dict[str, list[str]] = {}
        for name, cluster in sorted(leaderboard.clusters.items()):
            groups.setdefault(cluster, []).append(name)
        text += (
            " Collections that resemble each other count as one effect. The groups are: "
            f"{'; '.join(', '.join(names) for names in groups.values())}."
        )
    yield text
    yield (
        f"Tuned rows choose among {trials} random settings and the default, in {budget.folds} "
        "folds: the other folds choose the setting for each query. Intervals of differences "
        "between two choices out of fold hold together over all collections. All other intervals "
        "hold together with their kind on the same collection. Means over collections have "
        "intervals by Hartung and Knapp, and leave out collections on which no query differs. Each "
        "of these intervals holds by itself, but those for all k hold together. Measured with "
        f"fusion-bench {leaderboard.version}; the command writes every cell to `leaderboard.json`."
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
        "▲ is better and ▼ is worse. Without a mark, no difference is shown, or unjudged documents "
        "decide. Systems with equal values on every collection share a row. A system has a mean "
        f"rank if every collection has the system. [{ROWS}]({ROWS}) has the difference of each "
        "system on each collection, with its interval. (ranks) marks collections whose lists hold "
        "ranks, so that score methods depend on the rank alone."
    )
    for title, answer in answers.items():
        yield f"## {title}"
        yield answer.sentence
        if answer.rows:
            width = WIDTHS.get(title)
            yield format_rows([row[:width] for row in (answer.header, *answer.rows)])
            if width is not None:
                yield f"[All columns as CSV]({table_name(title)})."
    for kind in SHOWN:
        if names := merge_equal(results, kind):
            yield f"## {TITLES[kind]}"
            table = _system_table(results, names)
            yield format_rows(keep_columns(table, ("system", *SUMMARY)))


def _list_differences(results: Results) -> Iterator[Sequence[str]]:
    """Header of the CSV, and a row for each system: its difference on each collection."""
    for kind in TITLES:
        if names := merge_equal(results, kind):
            header, *rows = _system_table(results, names)
            if kind == next(iter(TITLES)):
                yield ["kind", *header]
            yield from ([kind, *row] for row in rows)


def merge_equal(results: Results, kind: str) -> list[list[str]]:
    """Names of the rows of a kind, those of equal values on every collection together."""
    equal: dict[str, list[str]] = {}
    for name in dict.fromkeys(row.name for each in results for row in each.rows_of(kind)):
        cells = (each.cells.get(name) for each in results)
        key = repr([None if cell is None else cell.values for cell in cells])
        equal.setdefault(key, []).append(name)
    return list(equal.values())


def _system_table(results: Results, names: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """A row each group of equal systems, best mean rank first, then by name."""
    collections = (each.head.name + ("" if each.is_scored else " (ranks)") for each in results)
    header = ("system", *collections, *SUMMARY)
    ranks = {name: _mean_rank(results, name) for name, *_ in names}
    ordered = sorted(names, key=lambda group: (ranks[group[0]], group[0]))
    return [header, *(_system_row(results, group, ranks[group[0]]) for group in ordered)]


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
