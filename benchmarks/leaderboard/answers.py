"""What a leaderboard says to the questions that people ask of fusion, in numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from benchmarks.leaderboard.random_effects import PooledEffect, join_clusters, pool_effects
from benchmarks.leaderboard.results import CollectionResults, adjust_for_choice
from benchmarks.leaderboard.rows import (
    ALL_LISTS,
    BASELINE,
    CHOSEN_CONSTANT,
    CONSTANTS,
    CONVEX,
    DEFAULT_CONSTANT,
    DEPTHS,
    MEASURE,
    PAIR,
    RERANK_DEPTH,
    SHORT_LISTS,
    TUNED_PAIR,
    UNION,
    against_source,
    k_name,
    reranked_name,
    tuned_name,
)
from fusion_bench.experiment.dialect import dialects
from fusion_bench.stats.comparison import BETTER, WORSE, Comparison
from fusion_bench.stats.comparison_family import FusionVerdict, compare_family, decide_fusion
from fusion_bench.stats.intervals import clopper_pearson
from fusion_bench.stats.values import Pair

#: A reranked row counts where the reranker scored at least this share of what it orders.
COVERED: Final = 0.99
#: A fusion with one weight above this share of their sum is switched off.
ALONE: Final = 0.95

Results = Sequence[CollectionResults]
Clusters = Mapping[str, str]


class Bar(NamedTuple):
    """An effect in a picture; NaN = it has no interval."""

    name: str
    mean: float
    low: float
    high: float


class QuestionAnswer(NamedTuple):
    """An answer to a question.

    Attributes:
        sentence: In words and numbers.
        header: Of its table.
        rows: Of its table.
        bars: Of its picture.
    """

    sentence: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    bars: Sequence[Bar] = ()


def pool(
    rows: Mapping[str, Comparison], clusters: Clusters, *, family: int = 1
) -> PooledEffect | None:
    """One effect over collections, of so many that hold together; None without a spread."""
    effects = {
        name: (row.difference, row.standard_error**2)
        for name, row in rows.items()
        if row.standard_error > 0
    }
    if len(effects) == 1:
        [row] = (rows[name] for name in effects)
        return PooledEffect(mean=row.difference, low=row.low, high=row.high, effects=1)
    joined = join_clusters(effects, clusters).values()
    if not joined:
        return None
    means, variances = zip(*joined, strict=True)
    return pool_effects(means, variances, family=family)


def _compare_over_collections(
    results: Sequence[CollectionResults], row: str
) -> dict[str, Comparison]:
    """A row that is a difference, on every collection that has it: one family."""
    known = {each: table for each in results if (table := each.table([row])) is not None}
    pairs = [pair for table in known.values() for pair in table.pairs(MEASURE.name)]
    rows = compare_family(pairs) if pairs else []
    nulls = [each.cells[row].null for each in known]
    if all(nulls):
        rows = adjust_for_choice(rows, nulls)
    return {each.head.name: compared for each, compared in zip(known, rows, strict=True)}


def _engine_constants() -> dict[int, list[str]]:
    """Each k of our ``rrf`` that is an engine's default, and these engines in order.

    It can differ from the engine's own number: Qdrant counts ranks from 0, and its 2 is our 1. Of
    an engine's methods the first one counts.
    """
    found: dict[int, list[str]] = {}
    for name, dialect in dialects.load_all().items():
        built = (method.model_validate({}) for method in dialect.methods)
        known = (getattr(each, "constant", getattr(each, "k", None)) for each in built)
        if (k := next((each for each in known if each is not None), None)) is not None:
            found.setdefault(int(k), []).append(name)
    return found


def format_difference(row: Comparison | None) -> str:
    """A difference with its interval and its answer."""
    if row is None:
        return "–"
    mark = "▲" if row.answer in BETTER else "▼" if row.answer in WORSE else ""
    return f"{row.difference:+.4f} {_interval(row.low, row.high)} {mark}".strip()


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None or not math.isfinite(low + high):
        return "(no interval)"
    if low <= -1 and high >= 1:
        return "(too few differing queries for an interval)"
    return f"[{low:+.4f}, {high:+.4f}]"


def _format_effect(effect: PooledEffect | None) -> str:
    return "–" if effect is None else f"{effect.mean:+.4f} {_interval(effect.low, effect.high)}"


def _describe(effect: PooledEffect | None) -> str:
    if effect is None:
        return "No mean over collections is known."
    text = f"The difference is {_format_effect(effect)}"
    if effect.effects == 1:
        return f"{text}."
    new = _interval(effect.new_low, effect.new_high)
    return f"{text} over {effect.effects} effects; expect {new} on a new collection."


def _count(rows: Iterable[Comparison]) -> tuple[int, int]:
    """How many are better and worse."""
    answers = [row.answer for row in rows]
    return sum(each in BETTER for each in answers), sum(each in WORSE for each in answers)


def _state_counts(
    rows: Mapping[str, Comparison], clusters: Clusters, kind: str = "collections"
) -> str:
    """On how many effects a row is better and worse, with the interval of the latter share."""
    sides = count_effects(rows, clusters)
    better, worse = sides.count(1), sides.count(-1)
    effects = kind if len(sides) == len(rows) else f"effects ({len(rows)} {kind})"
    text = f"better on {better} of {len(sides)} {effects} and worse on {worse}"
    if not rows:
        return text
    low, high = clopper_pearson(worse, len(sides))
    return f"{text} (95 % interval: {low:.0%} to {high:.0%})"


def count_effects(rows: Mapping[str, Comparison], clusters: Clusters) -> list[int]:
    """1, -1 or 0 of each effect: a row is shown better, worse, or neither.

    Collections that resemble each other are one effect: their mean, with the greatest critical
    value that one of them has.
    """
    members: dict[str, list[Comparison]] = {}
    for name, row in rows.items():
        members.setdefault(clusters.get(name, name), []).append(row)
    sides = []
    for alike in members.values():
        better, worse = _count(alike)
        if len(alike) > 1:
            mean = np.mean([row.difference for row in alike])
            width = np.hypot.reduce([row.standard_error for row in alike]) / len(alike)
            width *= np.max([row.critical_value for row in alike])
            better, worse = int(mean > width), int(mean < -width)
        sides.append(better - worse)
    return sides


def _bars(rows: Mapping[str, Comparison], effect: PooledEffect | None) -> list[Bar]:
    bars = [Bar(name, row.difference, row.low, row.high) for name, row in rows.items()]
    return [*bars, *_pooled_bars(effect)]


def _pooled_bars(effect: PooledEffect | None, name: str = "mean") -> Iterator[Bar]:
    if effect is not None:
        yield Bar(name, effect.mean, _number(effect.low), _number(effect.high))
        if name == "mean":
            yield Bar(
                "a new collection", effect.mean, *map(_number, (effect.new_low, effect.new_high))
            )


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def answer_fusion(results: Results, clusters: Clusters) -> QuestionAnswer:
    """Does fusion beat the best single list?"""
    scored = [each for each in results if each.is_scored]
    tuned = _compare_over_collections(results, against_source(BASELINE))
    convex = _compare_over_collections(scored, against_source(CONVEX))
    if not tuned:
        return QuestionAnswer("No collection has the rows yet.")
    untuned = {
        each.head.name: row
        for each in results
        if (row := each.compare([BASELINE], _best_source(each)).get(BASELINE)) is not None
    }
    off = {each.head.name: _switched_off(each) for each in results}
    won = [
        f"{name} ({method})"
        for method, compared in ((BASELINE, tuned), (CONVEX, convex))
        for name, row in compared.items()
        if method in off[name] and row.answer in BETTER
    ]
    unpassed = [each.head.name for each in results if not _methods_above(each)]
    effect = pool(tuned, clusters)
    sentence = (
        f"Compared to the best single list, untuned RRF is {_state_counts(untuned, clusters)}. "
        f"Compared to the list chosen out of fold, tuned RRF is {_state_counts(tuned, clusters)}. "
        f"{_describe(effect)}"
    )
    if won:
        sentence += f" On {', '.join(won)} one list has all the weight, so nothing is fused."
    if unpassed:
        sentence += f" On {', '.join(unpassed)} no untuned method beats the best list."
    rows = [_fusion_row(each, (tuned, convex), off[each.head.name]) for each in results]
    header = (
        *("collection", "best list", "rrf − best list", "untuned methods above it", "fusion"),
        *("rrf, tuned − list chosen out of fold", "convex, tuned − that list", "switched off"),
        "rrf, tuned − rrf",
    )
    return QuestionAnswer(sentence, header, rows, _bars(tuned, effect))


def _fusion_row(
    each: CollectionResults, compared: Sequence[Mapping[str, Comparison]], off: Sequence[str]
) -> tuple[str, ...]:
    """A collection's row of the first answer.

    Args:
        each: The collection.
        compared: By collection, tuned RRF and tuned convex against the chosen list.
        off: The tuned methods that are fusion switched off.
    """
    return (
        each.head.name,
        _best_source(each),
        format_difference(each.compare([BASELINE], _best_source(each)).get(BASELINE)),
        str(_methods_above(each)),
        _fusion_verdict(each),
        *(format_difference(rows.get(each.head.name)) for rows in compared),
        ", ".join(off) or "no",
        format_difference(each.judge(tuned_name(BASELINE))),
    )


def _best_source(each: CollectionResults) -> str:
    return each.best(row.name for row in each.rows_of("source"))


def _methods_above(each: CollectionResults) -> int:
    """How many untuned methods have a higher mean than the best source."""
    best = each.mean(_best_source(each))
    return sum(each.mean(row.name) > best for row in each.rows_of("method"))


def _fusion_verdict(each: CollectionResults) -> FusionVerdict:
    """Of the family of untuned methods × sources, without methods that reproduce a source."""
    sources = {row.name: each.cells[row.name].values for row in each.rows_of("source")}
    methods = [
        row.name
        for row in each.rows_of("method")
        if each.cells[row.name].values not in sources.values()
    ]
    if not methods:
        return "not shown"
    fusions, singles = (
        {name: values for name in names if (values := each.values(name)) is not None}
        for names in (methods, sources)
    )
    pairs = {
        (fusion, source): Pair.from_arrays(values, alone, each.head.groups)
        for fusion, values in fusions.items()
        for source, alone in singles.items()
    }
    return decide_fusion(pairs).verdict


def _switched_off(each: CollectionResults) -> list[str]:
    """The tuned methods of which most folds chose one weight of nearly the whole sum."""
    found = []
    for method in (BASELINE, CONVEX):
        cell = each.cells.get(against_source(method))
        shares = [_greatest_share(params) for params in (cell.chosen if cell else ())]
        if sum(share >= ALONE for share in shares) * 2 > len(shares):
            found.append(method)
    return found


def _greatest_share(params: Mapping[str, object]) -> float:
    weights = [
        float(value)
        for key, value in params.items()
        if ".weights." in key and isinstance(value, int | float)
    ]
    total = sum(weights)
    return max(weights) / total if total > 0 else 0.0


def answer_convex(results: Results, clusters: Clusters) -> QuestionAnswer:
    """Does tuned convex fusion beat tuned RRF?"""
    compared = _compare_over_collections([each for each in results if each.is_scored], TUNED_PAIR)
    if not compared:
        return QuestionAnswer("No collection whose lists have scores has both rows yet.")
    effect = pool(compared, clusters)
    counts = _state_counts(compared, clusters, "collections with scores")
    sentence = f"Compared to tuned RRF, tuned convex fusion is {counts}. {_describe(effect)}"
    rows = [(name, format_difference(row)) for name, row in compared.items()]
    header = ("collection", "convex, tuned − rrf, tuned")
    return QuestionAnswer(sentence, header, rows, _bars(compared, effect))


def answer_constant(results: Results, clusters: Clusters) -> QuestionAnswer:
    """Which k?"""
    chosen = {
        each.head.name: row
        for each in results
        if (row := each.comparisons.get(CHOSEN_CONSTANT)) is not None
    }
    tables = {variant: _compare_constants(results, variant) for variant in VARIANTS}
    if not chosen:
        return QuestionAnswer("No collection has the rows yet.")
    sentence = (
        f"Compared to k = 60, k chosen out of fold is {_state_counts(chosen, clusters)}. "
        f"{_describe(pool(chosen, clusters))} A fixed small k can be better or worse: "
        "see the table."
    )
    engines = _engine_constants()
    rows, bars = [], []
    for k in CONSTANTS:
        cells = [str(k), ", ".join(_name_engines(engines, k))]
        for table in tables.values():
            found = {name: compared[k] for name, compared in table.items() if k in compared}
            effect = pool(found, clusters, family=len(CONSTANTS) - 1)
            counts = "{}/{} of {}".format(*_count(found.values()), len(found))
            cells += [counts, _format_effect(effect)]
            if table is tables[ALL_LISTS]:
                bars += list(_pooled_bars(effect, f"k = {k}"))
        rows.append(cells if k != DEFAULT_CONSTANT else [*cells[:2], *[""] * (len(cells) - 2)])
    header = ["k", "default of"]
    for variant in VARIANTS:
        header += [f"{variant}: better/worse", f"{variant}: mean difference to k = 60"]
    return QuestionAnswer(sentence, header, rows, bars)


def _name_engines(engines: Mapping[int, Iterable[str]], k: int) -> Iterator[str]:
    """Engines whose default is nearest to this k, with the default where it is another."""
    for default, names in sorted(engines.items(), key=lambda item: abs(item[0] - k)):
        if min(CONSTANTS, key=lambda each: abs(each - default)) == k:
            yield from (name if default == k else f"{name} ({default})" for name in names)


VARIANTS: Final = (ALL_LISTS, SHORT_LISTS, PAIR)


def _compare_constants(results: Results, variant: str) -> dict[str, dict[int, Comparison]]:
    """Collection → k → its difference to the default; intervals of a collection hold together."""
    names = {k_name(k, variant): k for k in CONSTANTS}
    tables = {}
    for each in results:
        compared = each.compare(names, k_name(DEFAULT_CONSTANT, variant))
        tables[each.head.name] = {names[name]: row for name, row in compared.items()}
    return tables


def answer_reranker(results: Results, clusters: Clusters) -> QuestionAnswer:
    """Does a reranker make fusion moot?"""
    rows: list[Sequence[str]] = []
    counted: dict[str, Comparison] = {}
    for each in results:
        for depth in DEPTHS if each.head.reranker else ():
            cells, against = _below_reranker(each, depth)
            rows.append(cells)
            if against is not None and depth == RERANK_DEPTH:
                counted[each.head.name] = against
    if not rows:
        return QuestionAnswer("No collection has a reranker.")
    mirrored = {name: _mirror(row) for name, row in counted.items()}
    effect = pool(mirrored, clusters)
    reranked = sum(bool(each.head.reranker) for each in results)
    sentence = (
        f"A reranker orders the first {RERANK_DEPTH} documents. Compared to the best single list, "
        f"RRF below it is {_state_counts(mirrored, clusters)}. {_describe(effect)} A collection "
        f"counts if the reranker scored {COVERED:.0%} of the documents that it has to order: "
        f"{reranked - len(counted)} of {reranked} with a reranker are left out."
    )
    header = (
        *("collection", "depth", "scored", "best list", "rrf − list", "convex − rrf"),
        *("rrf − union", "sd of methods, without", "with"),
    )
    return QuestionAnswer(sentence, header, rows, _bars(mirrored, effect))


def _below_reranker(each: CollectionResults, depth: int) -> tuple[Sequence[str], Comparison | None]:
    """The cells of a row, and the best list − RRF; None = too few documents are scored.

    Where some list is not covered, those that are produced what was scored: none is an opponent.
    """
    name = f"{each.head.name} ({each.head.reranker})"
    below = reranked_name(BASELINE, depth)
    cell = each.cells.get(below)
    coverage = math.nan if cell is None or cell.coverage is None else cell.coverage
    head = [name, str(depth), "–" if math.isnan(coverage) else f"{coverage:.1%}"]
    pair = find_reranked_pair(each, depth)
    if pair is None:
        return [*head, "left out", *["–"] * 5], None
    best = pair[1]
    convex, union = reranked_name(CONVEX, depth), reranked_name(UNION, depth)
    others = [other for other in (convex, union) if _is_covered(each, other)]
    compared = each.compare([best, *others], below)
    against, united = compared.get(best), compared.get(union)
    cells = [
        *head,
        best.partition(",")[0],
        format_difference(None if against is None else _mirror(against)),
        format_difference(compared.get(convex)),
        format_difference(None if united is None else _mirror(united)),
    ]
    spreads = _spreads(each) if depth == RERANK_DEPTH else ["–", "–"]
    return [*cells, *spreads], against


def find_reranked_pair(
    each: CollectionResults, depth: int = RERANK_DEPTH
) -> tuple[str, str] | None:
    """RRF and the best list below the reranker; None = it did not score what both give it."""
    sources = [reranked_name(row.name, depth) for row in each.rows_of("source")]
    below = reranked_name(BASELINE, depth)
    if not all(_is_covered(each, name) for name in (below, *sources)):
        return None
    return below, each.best(sources)


def _is_covered(each: CollectionResults, name: str) -> bool:
    cell = each.cells.get(name)
    return cell is not None and (cell.coverage or 0.0) >= COVERED


def _spreads(each: CollectionResults) -> list[str]:
    """Standard deviation of the means of all methods, without and with the reranker."""
    methods = [row.name for row in each.rows_of("method")]
    below = [reranked_name(name) for name in methods if reranked_name(name) in each.cells]
    return [
        f"{np.std([each.mean(name) for name in names]):.4f}" if names else "–"
        for names in (methods, below)
    ]


def _mirror(row: Comparison) -> Comparison:
    """Baseline − candidate."""
    sides = {**dict(zip(BETTER, WORSE, strict=True)), **dict(zip(WORSE, BETTER, strict=True))}
    answer = sides.get(row.answer, row.answer) if row.answer is not None else None
    changed = {"difference": -row.difference, "low": -row.high, "high": -row.low, "answer": answer}
    return row.model_copy(update=changed)


#: Question → its answer, in the order of the page.
QUESTIONS: Final[Mapping[str, Callable[[Results, Clusters], QuestionAnswer]]] = {
    "Does fusion beat the best single list?": answer_fusion,
    "Does tuned convex fusion beat tuned RRF?": answer_convex,
    "Which k?": answer_constant,
    "Does a reranker make fusion moot?": answer_reranker,
}
