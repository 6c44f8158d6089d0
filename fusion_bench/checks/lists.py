"""What ranks, scores, order of the input lists say against them.

Rank measures do not see the scale of scores, and a blend lives on it. So each list is looked at
before anything is concluded from it: scores that are the first stage's dealt out again in a new
order, a sigmoid that was applied twice, a reranker that is worse than no reranker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np

from fusion_bench import measures as measure
from fusion_bench.checks.judges import family_of
from fusion_bench.checks.records import ListInfo
from fusion_bench.checks.source_ties import count_places, order_by_rank
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import (
    CategoricalIds,
    number_by_appearance,
    query_of_rows,
    query_slices,
)
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.qrels import find_unmatched_ids
from fusion_bench.data.read_options import Order
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import FusionBenchError
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.formats import find_distribution, read_raw_table
from fusion_bench.io.raw_files import FileLayout, read_head
from fusion_bench.measures import compute_measures, parse_measure
from fusion_bench.stats.intervals import estimate_mean

#: Bytes of a file that are looked at.
SAMPLE: Final = 1 << 17


def compare_rank_column(
    path: Path, layout: FileLayout, order: Order | None = None
) -> tuple[int, int] | None:
    """Compare ranks and scores of the first lists of a file.

    Args:
        path: A text file with one row a line.
        layout: How it is read.
        order: Which of its scores are better; None = as the layout implies.

    Returns:
        Lists with different ranks and different scores, and those of them in which documents of
        better rank mostly have lower scores. None where the file has no rank column, no scores, or
        a form of which a part cannot be read, or where a temporary file cannot be written.
    """
    if not path.is_file() or find_distribution(path, layout) is not None:
        return None
    text = read_head(path, SAMPLE)
    if not text.strip():
        return None
    with suppress(FusionBenchError, OSError, ValueError), TemporaryDirectory() as folder:
        name = path.name.removesuffix(".gz").removesuffix(".GZ")
        sample = Path(folder) / name
        sample.write_text(text, encoding="utf-8")
        table = read_raw_table(sample, "run", has_ranks=True, layout=layout)
        if table.ranks is None or table.values is None or isinstance(table.queries, CategoricalIds):
            return None
        ranks = np.array([float(rank) for rank in table.ranks])
        sign = -1.0 if table.holds_distances(order) else 1.0
        scores = sign * np.array([float(score) for score in table.values])
        query, names = number_by_appearance(table.queries)
        by_rank = np.lexsort((ranks, query))
        same = np.diff(query[by_rank]) == 0
        before, after = scores[by_rank][:-1], scores[by_rank][1:]
        rises = same & (after > before) & (np.diff(ranks[by_rank]) > 0)
        falls = same & (after < before) & (np.diff(ranks[by_rank]) > 0)
        steps = [
            np.bincount(query[by_rank][1:][kind], minlength=len(names)) for kind in (rises, falls)
        ]
        return (int((steps[0] + steps[1] > 0).sum()), int((steps[0] > steps[1]).sum()))
    return None


def count_constant_lists(run: Run, queries: Collection[str]) -> int:
    """How many of these queries have a list of two documents or more that all score the same."""
    is_same = _pairs_within(run) & (run.scores[1:] == run.scores[:-1])
    sizes = np.diff(run.offsets)
    pairs = np.bincount(query_of_rows(run.offsets)[1:][is_same], minlength=len(sizes))
    return _count_queries(run, (sizes > 1) & (pairs == sizes - 1), queries)


def count_changed_by_float32(run: Run, queries: Collection[str]) -> int:
    """How many of these queries trec_eval orders otherwise, because it reads 32-bit floats.

    Scores that differ as 64-bit floats are equal there, and then the greater document id stands
    first. Lists that a rank column orders count 0: trec_eval never reads that column.
    """
    if run.read_options.rank_from == "column":
        return 0
    with np.errstate(over="ignore"):
        short = run.scores.astype(np.float32)
    is_merged = (short[1:] == short[:-1]) & (run.scores[1:] != run.scores[:-1])
    is_moved = _pairs_within(run) & is_merged & (run.documents[:-1] < run.documents[1:])
    changed = np.zeros(len(run.queries), dtype=bool)
    changed[query_of_rows(run.offsets)[1:][is_moved]] = True
    return _count_queries(run, changed, queries)


def lowest_score(run: Run) -> float | None:
    """The lowest score of any document; None of an empty list."""
    return float(run.scores.min()) if len(run.scores) else None


def _pairs_within(run: Run) -> BoolArray:
    """(N - 1,): whether a row and the next belong to one query."""
    query = query_of_rows(run.offsets)
    return np.asarray(query[1:] == query[:-1])


def _count_queries(run: Run, marked: BoolArray, queries: Collection[str]) -> int:
    return sum(run.queries[q] in queries for q in np.flatnonzero(marked).tolist())


#: What both orders are measured by.
MEASURE: Final = "nDCG@10"
#: Level of the interval that has to lie above 0: a sound list is called reversed once in 2,000.
ALPHA: Final = 0.001
#: Fewer answered queries show nothing.
LEAST_QUERIES: Final = 5


class BothOrders(NamedTuple):
    """The mean nDCG@10 of a list as it was read, and from its end.

    Attributes:
        as_read: Over the queries that it answers.
        backwards: The same with the last document first.
        is_reversed: Whether the second is shown to be the greater one.
        queries: Queries that it answers with two documents or more.
    """

    as_read: float
    backwards: float
    is_reversed: bool
    queries: int


def measure_both_orders(runs: AlignedRuns, ranks: IntArray) -> BothOrders | None:
    """Measure a list from both ends.

    Args:
        runs: The candidates.
        ranks: Shape (N,): ranks of the list; 0 = not in it.

    Returns:
        None for a list that answers too few queries.
    """
    ordered = order_by_rank(runs, ranks)
    query = runs.query_index[ordered]
    counts = np.bincount(query, minlength=len(runs.queries))
    answered = counts > 1
    if answered.sum() < LEAST_QUERIES:
        return None
    forwards = count_places(runs, ordered)
    backwards = np.where(forwards > 0, counts[runs.query_index] + 1 - forwards, 0)
    values: list[FloatArray] = [
        compute_measures([parse_measure(MEASURE)], runs, positions)[0][answered]
        for positions in (forwards, backwards)
    ]
    groups = runs.group_codes[answered]
    gain = estimate_mean(values[1] - values[0], groups, alpha=ALPHA)
    is_reversed = gain.low is not None and gain.low > 0
    first, second = (float(row.mean()) for row in values)
    return BothOrders(first, second, is_reversed, int(answered.sum()))


#: Fewer queries whose own document leads, or a smaller share of them, are chance.
LEAST_OWN, LEAST_OWN_SHARE = 2, 0.1


def _measure_own_ids(runs: AlignedRuns, ranks: IntArray) -> dict[str, Any]:
    """Measure a list with and without the documents that have the ids of their queries.

    Args:
        runs: The candidates.
        ranks: Shape (N,): ranks of the list; 0 = not in it.

    Returns:
        Fields of a :class:`~fusion_bench.checks.records.ListInfo`; empty if few queries have such
        a document first, or if it is judged relevant.
    """
    first = np.flatnonzero((ranks == 1) & (runs.grades < runs.binary_relevance))
    leading = [
        row
        for row in first.tolist()
        if runs.vocabulary[int(runs.documents[row])] == runs.queries[int(runs.query_index[row])]
    ]
    answered = int(np.count_nonzero(ranks == 1))
    if len(leading) < max(LEAST_OWN, LEAST_OWN_SHARE * answered):
        return {}
    codes = {name: code for code, name in enumerate(runs.vocabulary)}
    own = np.array([codes.get(query, -1) for query in runs.queries], dtype=np.int64)
    kept = np.where(runs.documents == own[runs.query_index], 0, ranks)
    asked = [parse_measure(MEASURE)]
    means = [
        float(compute_measures(asked, runs, count_places(runs, order_by_rank(runs, each))).mean())
        for each in (ranks, kept)
    ]
    return {
        "own_id_queries": len(leading),
        "mean_with_own_ids": means[0],
        "mean_without_own_ids": means[1],
    }


def _list_facts(dataset: Dataset, run: Run, aligned: AlignedRuns) -> dict[str, Any]:
    """Fields of a :class:`~fusion_bench.checks.records.ListInfo`.

    Args:
        dataset: With the list.
        run: The list: a source or a rerank list.
        aligned: With the list among its sources or rerank lists, if it is used.
    """
    judged = set(dataset.qrels.queries)
    is_source = dataset.runs.get(run.name) is run
    names, ranks = (
        (aligned.sources, aligned.ranks) if is_source else (aligned.rerankers, aligned.rerank_ranks)
    )
    constant = count_constant_lists(run, judged)
    several = _count_queries(run, np.diff(run.offsets) > 1, judged) if constant else 0
    is_by_score = run.read_options.rank_from == "score" and run.read_options.source_ties == "trec"
    if (lowest := lowest_score(run)) is None or lowest > max(DELIMITERS) / 2:
        delimiters = 0
    else:
        near = [
            np.isclose(run.scores, each, rtol=DELIMITER_ROUNDING, atol=0) for each in DELIMITERS
        ]
        delimiters = int(np.count_nonzero(near[0] | near[1]))
    facts: dict[str, Any] = {
        "constant_lists": constant,
        "is_constant": is_by_score and 0 < constant == several,
        "delimiter_scores": delimiters,
        "float32_queries": count_changed_by_float32(run, judged),
        "lowest_score": lowest_score(run),
    }
    both = None
    if run.name in names:
        row = names.index(run.name)
        facts |= _meeting_facts(aligned, row if is_source else row + len(aligned.sources))
        facts |= _measure_own_ids(aligned, ranks[row])
        both = measure_both_orders(aligned, ranks[row])
    if both is not None:
        facts |= {
            "mean_as_read": both.as_read,
            "mean_backwards": both.backwards,
            # Of lists with equal scores alone, the order is the tie rule's.
            "is_reversed": both.is_reversed and 2 * facts["constant_lists"] < both.queries,
        }
    file = dataset.files.get(f"{'runs' if is_source else 'rerank'}/{run.name}")
    if file is not None and run.read_options.rank_from == "score":
        column = compare_rank_column(file.path, file.layout, run.read_options.order)
        if column is not None:
            facts |= zip(("rank_column_lists", "opposed_rank_lists"), column, strict=True)
    return facts


def _meeting_facts(aligned: AlignedRuns, place: int) -> dict[str, Any]:
    """How far the documents of a list are those of the judgments and of the other lists.

    Args:
        aligned: With the list.
        place: Of the list among sources and rerank lists.
    """
    common, (places, judged) = aligned.common_documents, aligned.top_documents[place].tolist()
    keys = [f"runs/{name}" for name in aligned.sources]
    keys += [f"rerank/{name}" for name in aligned.rerankers]
    smaller = np.minimum(common.diagonal(), common[place, place])
    return {
        "has_judged_documents": bool(common[place, -1]) or not common[place, place],
        "judged_share": judged / places if places else None,
        "common_documents": {
            key: float(common[place, t] / smaller[t])
            for t, key in enumerate(keys)
            if t != place and smaller[t]
        },
    }


#: What parts the sub-queries of a hybrid answer of OpenSearch without a normalization pipeline.
DELIMITERS: Final = (-9549511920.4881596047, -4422440593.9791198149)
#: Servers write them as 32-bit floats.
DELIMITER_ROUNDING: Final = 1e-6


#: Scores count as equal to the first stage's up to this part of them: files keep few decimals.
SAME = 1e-5
#: From this share of the queries on, a list's scores are called dealt out.
DEALT = 0.9
#: The sigmoid of anything in [0, 1] lies in [.5, .7311]; a little room for half precision.
TWICE = (0.49, 0.74)
#: A list on the unit scale that uses less of it is called squeezed.
NARROW = 0.3
#: Shares of scores at an end of the scale, and of queries with a tie at the top, worth a word.
SATURATED, TIED = 0.05, 0.1
#: The sigmoid of a greater logit is 1 in float64; of this one, 1 in float32.
FLAT_LOGIT = 17.0


@dataclass(frozen=True)
class RerankListCheck:
    """What was found of one rerank list.

    Attributes:
        name: The list.
        space: Its declared score space.
        low: Least score.
        high: Greatest score.
        tied_at_top: Share of the queries whose best score two documents or more have.
        saturated: Share of the scores at an end of the unit scale (``unit``, ``logit``).
        reused_run: The run whose scores it holds in another order; None = none.
        reused_share: Share of the queries where that is so.
        ndcg_difference: Run → difference in nDCG@10, list − run, over the list's own candidates,
            with its 95 % interval.
    """

    name: str
    space: ScoreSpace
    low: float
    high: float
    tied_at_top: float
    saturated: float
    reused_run: str | None
    reused_share: float
    ndcg_difference: dict[str, tuple[float, float, float]]

    @property
    def is_squeezed(self) -> bool:
        """Whether it uses little of the unit scale."""
        return self.space == "unit" and self.high - self.low < NARROW

    @property
    def is_sigmoid_twice(self) -> bool:
        """Whether its scores lie where a second sigmoid would have put them."""
        return self.is_squeezed and TWICE[0] <= self.low and self.high <= TWICE[1]

    @property
    def is_bad(self) -> bool:
        """Whether it is worse than every run, beyond chance."""
        return bool(self.ndcg_difference) and all(
            high < 0 for _, _, high in self.ndcg_difference.values()
        )


def check_rerank_list(
    run: Run, space: ScoreSpace, aligned: AlignedRuns, sources: dict[str, Run]
) -> RerankListCheck:
    """Look at one rerank list.

    Args:
        run: The list.
        space: What its scores are said to mean.
        aligned: With this list among its rerankers.
        sources: The runs by name, as they were read.
    """
    dealt = {name: _dealt(run, source) for name, source in sources.items()}
    # By name: of runs that fit equally well the order of the dataset must not choose.
    best = max(sorted(dealt), key=dealt.__getitem__, default=None)
    is_dealt = best is not None and dealt[best] >= DEALT
    return RerankListCheck(
        name=run.name,
        space=space,
        low=float(run.scores.min()),
        high=float(run.scores.max()),
        tied_at_top=_tied_at_top(run),
        saturated=_saturated(run.scores, space),
        reused_run=best if is_dealt else None,
        reused_share=dealt[best] if best is not None else 0.0,
        ndcg_difference=_gain(aligned, aligned.rerankers.index(run.name)),
    )


def describe_problems(check: RerankListCheck) -> Iterator[str]:
    """One sentence for each thing to know before the list's scores are believed."""
    name = f"rerank list {check.name!r}"
    if check.reused_run is not None:
        known = check.space == "order"
        remedy = "as score_space: order says" if known else "declare score_space: order"
        yield (
            f"the scores of {name} are those of run {check.reused_run!r} dealt out again "
            f"({check.reused_share:.0%} of its queries): only their order says anything, {remedy}"
        )
    if check.is_bad:
        run, (mean, low, high) = max(check.ndcg_difference.items(), key=lambda item: item[1][0])
        yield (
            f"{name} is a bad reranker: on its own candidates it is worse than every run, by "
            f"{-mean:.4f} nDCG@10 than {run!r} ([{low:+.4f}, {high:+.4f}]) and by more than the "
            "others"
        )
    if check.is_squeezed:
        cause = ", where a sigmoid applied twice would put them" if check.is_sigmoid_twice else ""
        yield (
            f"{name} is squeezed: its scores lie in [{check.low:.4g}, {check.high:.4g}]{cause}; a "
            "blend that mixes them with other scores weighs the reranker less than it says"
        )
    if check.space == "logit" and check.low >= 0 and check.high <= 1:
        yield (
            f"every score of {name} lies between 0 and 1, and it is declared logit: if these are "
            "probabilities, say score_space: unit"
        )
    if check.saturated >= SATURATED:
        share = f"{check.saturated:.0%} of the scores of {name}"
        yield f"{share} stand at an end of the scale, where nothing tells them apart"
    if check.tied_at_top >= TIED:
        yield f"{name} has a tie at the top in {check.tied_at_top:.0%} of its queries"


def _dealt(run: Run, source: Run) -> float:
    """Share of the list's queries whose scores are the source's best ones in another order."""
    rows = dict(query_slices(source.queries, source.offsets))
    compared = hits = 0
    for query, part in query_slices(run.queries, run.offsets):
        scores = np.sort(run.scores[part])[::-1]
        if len(scores) < 2 or scores[0] == scores[-1]:
            continue  # says nothing
        compared += 1
        best_scores = np.sort(source.scores[rows.get(query, slice(0))])[::-1][: len(scores)]
        if len(best_scores) == len(scores):
            hits += bool((np.abs(scores - best_scores) <= SAME * np.abs(best_scores)).all())
    return hits / compared if compared else 0.0


def _find_reused_run(dataset: Dataset, run: Run, check: RerankListCheck) -> str | None:
    """The run whose scores a rerank list deals out in another order; a copy of a run does not."""
    if check.reused_run is None:
        return None
    source = dataset.runs[check.reused_run]
    rows = dict(query_slices(source.queries, source.offsets))
    for query, part in query_slices(run.queries, run.offsets):
        own = run.vocabulary.decode(run.documents[part])
        given = source.documents[rows.get(query, slice(0))][: len(own)]
        if own != source.vocabulary.decode(given):
            return check.reused_run
    return None


def _tied_at_top(run: Run) -> float:
    sizes = np.diff(run.offsets)
    begins, sizes = run.offsets[:-1][sizes > 0], sizes[sizes > 0]
    best = np.repeat(np.maximum.reduceat(run.scores, begins), sizes)
    count = np.add.reduceat((run.scores == best).astype(np.int64), begins)
    return float((count[sizes > 1] > 1).mean()) if (sizes > 1).any() else 0.0


def _saturated(scores: FloatArray, space: ScoreSpace) -> float:
    if space == "unit":
        return float(((scores <= 0) | (scores >= 1)).mean())
    return float((np.abs(scores) >= FLAT_LOGIT).mean()) if space == "logit" else 0.0


def _gain(aligned: AlignedRuns, row: int) -> dict[str, tuple[float, float, float]]:
    """List − run in nDCG@10, where each orders the list's own candidates."""
    scored = aligned.rerank_ranks[row] > 0
    answered = np.bincount(aligned.query_index, weights=scored, minlength=len(aligned.queries)) > 0
    if answered.sum() < 2:
        return {}
    groups = aligned.group_codes[answered]
    asked = [parse_measure("nDCG@10")]

    def value(ranks: IntArray) -> FloatArray:
        place = count_places(aligned, order_by_rank(aligned, np.where(scored, ranks, 0)))
        return np.asarray(measure.compute_measures(asked, aligned, place)[0][answered])

    list_values = value(aligned.rerank_ranks[row])
    gains = {}
    for s, name in enumerate(aligned.sources):
        difference = estimate_mean(list_values - value(aligned.ranks[s]), groups)
        gains[name] = (difference.mean, difference.low, difference.high)
    return gains


def list_infos(repeats: Sequence[tuple[Dataset, AlignedRuns]]) -> list[ListInfo]:
    """What was noticed about each input list, sources first; then about those of later repeats.

    Args:
        repeats: Each repeat of a dataset with the lists that are used, and the same lists over the
            queries that are looked at; one where every list has one file.
    """
    several = repeats[0][0].repeat_counts
    infos = _list_repeat(*repeats[0], dict.fromkeys(several, 1))
    for number, (dataset, aligned) in enumerate(repeats[1:], 2):
        present = [key for key, count in several.items() if number <= count]
        every = _list_repeat(dataset, aligned, dict.fromkeys(present, number))
        infos += [info for info in every if info.trial is not None]
    return infos


def _list_repeat(
    dataset: Dataset, aligned: AlignedRuns, numbers: Mapping[str, int]
) -> list[ListInfo]:
    """The lists of one repeat, with its number by ``runs/NAME`` and ``rerank/NAME``."""
    judged = set(dataset.qrels.queries)
    infos = []
    for run in (*dataset.runs.values(), *dataset.rerankers.values()):
        space = dataset.spaces[run.name] if run.name in dataset.rerankers else None
        returned = {q for q, size in zip(run.queries, np.diff(run.offsets), strict=True) if size}
        asked = judged if run.switch is None else judged & run.switch.queries
        facts: dict[str, Any] = {}
        if run.switch is not None:
            facts = {"when": dict(run.switch.condition), "on_queries": len(asked)}
        if space is not None:
            meta = dataset.provenance.get(run.name)
            check = check_rerank_list(run, space, aligned, dict(dataset.runs))
            facts = {
                "problems": tuple(describe_problems(check)),
                "reused_run": _find_reused_run(dataset, run, check),
                "degraded_queries": len(dataset.degraded(run.name)),
            }
            if meta is not None:
                asked_of = {"provider": meta.asked, "ledger": meta.ledger}
                facts |= {**asked_of, "unread_scores": meta.unread}
        info = ListInfo(
            name=run.name,
            trial=numbers.get(f"{'runs' if space is None else 'rerank'}/{run.name}"),
            kind="run" if space is None else "rerank",
            roles=tuple(sorted(run.roles)),
            read_options=run.read_options.settings,
            family=family_of(dataset, run),
            score_space=space,
            unanswered_queries=len(asked - returned),
            unjudged_queries=len(returned - judged),
            unmatched_queries=find_unmatched_ids(returned, judged),
            duplicate_rows=run.duplicates,
            zero_scores=run.zero_scores,
            notes=run.notes,
            held_out=dict(dataset.held_out.counts),
            **_list_facts(dataset, run, aligned),
            **facts,
        )
        infos.append(info)
    return infos
