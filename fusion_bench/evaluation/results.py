"""What was measured, as the records of a report: systems, comparisons, fusion against sources.

How much of an oracle is chance: it takes for each query the best of V variants. Its counterpart
takes as many variants that know nothing of the query: one fixed fusion whose scores are disturbed
at random, as strongly as makes their mean that of the V variants. What the oracle has above its
counterpart is more than the maximum of noise. The disturbances are independent: variants that
resemble each other can stay below it, and then nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from operator import eq
from typing import Any, Final, Literal

import numpy as np

from fusion_bench.checks.unjudged import find_system_bounds, measure_unjudged
from fusion_bench.config.json_records import none_if_nan
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import count_within_queries, to_offsets
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, positions
from fusion_bench.data.records import drop_final, sort_field_values
from fusion_bench.evaluation import report_records
from fusion_bench.evaluation.assessment import Assessment, describe_repeats
from fusion_bench.evaluation.prepared_dataset import ALL_QUERIES, EvaluationSet, slice_values
from fusion_bench.experiment.system import System, collapse_alike
from fusion_bench.measures import Measure, TieSensitivity, compute_measures
from fusion_bench.measures._base import is_bounded
from fusion_bench.measures.rankings import relevant_candidates
from fusion_bench.ranking.collapse import collapse_pool
from fusion_bench.ranking.plain_systems import plain_systems
from fusion_bench.ranking.system_ranking import SystemRanking, rank_candidates
from fusion_bench.ranking.system_scores import UNCACHED, Scores, evaluate_systems, query_blocks
from fusion_bench.stats import repeat_variance
from fusion_bench.stats.comparison import Comparison
from fusion_bench.stats.comparison_family import (
    FusionAnswer,
    compare_tables,
    decide_fusion,
    find_first_group,
)
from fusion_bench.stats.intervals import estimate_mean, exact_mean
from fusion_bench.stats.unjudged import QueryBounds, UnjudgedDifference
from fusion_bench.stats.values import MeasuredValues, Pair
from fusion_bench.util.formatting import format_number

Config = Mapping[str, Any]


def compare_fusions(
    task: EvaluationSet, assessed: Mapping[str, Assessment], sources: Mapping[str, Scores]
) -> report_records.FusionResult | None:
    """Every fusion against every single source; None where there is no fusion.

    Like with like: a reranker's merit is not fusion's, so reranked fusions only count where there
    are no others.

    Args:
        task: The experiment on one dataset.
        assessed: What was measured, by name of the system.
        sources: By name the values of each source alone, the primary measure first.
    """
    systems = {name: task.experiment.systems[name].resolved_config for name in assessed}
    fusions = [name for name, config in systems.items() if is_fusion(config)]
    plain = [name for name in fusions if not is_reranked(systems[name])]
    compared = {name: assessed[name] for name in plain or fusions}
    if not compared or not sources:
        return None
    pairs = {}
    for name, (source, scores) in product(compared, sources.items()):
        repeated = task.repeat_lists(task.experiment.systems[name])
        pairs[name, source] = Pair(
            compared[name].primary_values(repeated),
            MeasuredValues(scores.values[0], scores.repeats[:, 0], frozenset({f"runs/{source}"})),
            task.runs.groups,
            (name, source),
            is_bounded=task.measures[0].is_bounded,
            kind=task.judgment_kind,
        )
    answer = decide_fusion(pairs, seed=task.experiment.seed, alpha=task.experiment.alpha)
    contradicted, unjudged = _find_contradiction(task, answer, pairs) or ((), None)
    verdict = "unjudged decide" if contradicted else answer.verdict
    return report_records.FusionResult(
        **{**dict(answer), "verdict": verdict},
        contradicted=contradicted,
        unjudged=unjudged and unjudged.record,
        fusion_mean=exact_mean(compared[answer.fusion].values[0]),
        source_mean=exact_mean(sources[answer.source].values[0]),
        fusions=len(compared),
        sources=len(sources),
        is_reranked=not plain,
    )


def _find_contradiction(
    task: EvaluationSet, answer: FusionAnswer, pairs: Mapping[tuple[str, str], Pair]
) -> tuple[tuple[str, str], UnjudgedDifference] | None:
    """The first fusion and source whose shown difference unjudged documents contradict."""
    if answer.verdict == "not shown":
        return None
    pays, settings = answer.verdict == "pays", task.experiment
    shown = (answer.fusion, None) if pays else (None, answer.source)
    for names, pair in pairs.items():
        if task.judgment_kind == "complete" or not any(map(eq, names, shown)):
            continue
        alone = _list_alone(task, names[1])
        [evidence] = measure_unjudged(alone, task.runs, task.measures[:1])
        pair = replace(pair, baseline=replace(pair.baseline, unjudged=evidence))
        unjudged = pair.compare_unjudged(settings.alpha)
        if unjudged is not None and unjudged.decides(1 if pays else -1, settings.min_gain):
            return names, unjudged
    return None


def is_fusion(config: Config | None) -> bool:
    """Whether a resolved configuration fuses several lists, be it in a stage."""
    return any(len(part.get("runs", ())) > 1 for part in _list_parts(config))


def is_reranked(config: Config | None) -> bool:
    """Whether the scores of a reranker weigh more than 0."""
    return bool(_list_rerank_blends(config)) and not has_idle_reranker(config)


def has_idle_reranker(config: Config | None) -> bool:
    """Whether rerankers are named, but the scores of each weigh 0."""
    blends = _list_rerank_blends(config)
    return bool(blends) and all(blend.get("beta") == 0 for blend in blends)


def _list_rerank_blends(config: Config | None) -> list[Config]:
    """The blends that name a reranker, those of stages too."""
    blends = (part.get("blend") or {} for part in _list_parts(config))
    return [blend for blend in blends if blend.get("method", "none") != "none"]


def _list_parts(config: Config | None) -> Iterator[Config]:
    """List the parts of a system's configuration in a report."""
    if config is not None:
        yield config
        for stage in (config.get("stages") or {}).values():
            yield from _list_parts(stage)


def _measure_result(
    task: EvaluationSet,
    measure: str,
    values: FloatArray,
    repeats: FloatArray,
    ties: report_records.TieResult | None = None,
    source_ties: report_records.SourceTieResult | None = None,
    bounds: QueryBounds | None = None,
) -> report_records.MeasureResult:
    """The record of one measure; ``trials``, (T, Q), are what ``values`` are the means of."""
    alpha = task.experiment.alpha
    estimate = estimate_mean(values, task.groups, alpha=alpha)
    means = repeat_variance.repeat_means([repeats])
    estimate = repeat_variance.widen_estimate(estimate, means, alpha=alpha)
    if is_bounded(measure):
        estimate = estimate.clip(0.0, 1.0)
    return report_records.MeasureResult(
        mean=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        values=tuple(values.tolist()),
        trials=tuple(map(tuple, repeats.tolist())) if len(repeats) > 1 else (),
        ties=ties,
        source_ties=source_ties,
        bounds=None if bounds is None else bounds.record,
    )


def _tie_fields(ties: TieSensitivity, m: int) -> dict[str, Any]:
    """The fields of a :class:`TieResult` for one measure."""
    extremes = {"minimum": ties.minimum, "maximum": ties.maximum, "expected": ties.expected}
    means = {name: float(values[m].mean()) for name, values in extremes.items()}
    return {"affected_queries": int(ties.affected[m]), **means}


def _system_result(
    task: EvaluationSet,
    system: System,
    assessment: Assessment,
    slices: Sequence[tuple[str, str | None, BoolArray]],
) -> report_records.SystemResult:
    """The row of one system."""
    results = {}
    inside = assessment.source_ties
    for m, measure in enumerate(task.measures):
        final, source_ties = report_records.TieResult(**_tie_fields(assessment.ties, m)), None
        if inside is not None and measure.name not in inside.unknown:
            fields = _tie_fields(inside.ties, m)
            source_ties = report_records.SourceTieResult(**fields, settlements=inside.settlements)
        repeats, bounds = assessment.repeats[:, m], assessment.bounds[m]
        results[measure.name] = _measure_result(
            task, measure.name, assessment.values[m], repeats, final, source_ties, bounds
        )
    unjudged, primary = assessment.unjudged, assessment.bounds[0]
    return report_records.SystemResult(
        name=system.name,
        kind="system",
        config=system.resolved_config,
        measures=results,
        judged_only=tuple(unjudged.judged_only.tolist()),
        filled=() if unjudged.filled is None else tuple(map(none_if_nan, unjudged.filled.tolist())),
        unjudged_share=float(unjudged.share.mean()),
        slice_bounds=tuple(
            report_records.SliceBounds(
                field=field, value=value, bounds=primary.select_queries(mask).record
            )
            for field, value, mask in slices
            if primary is not None
        ),
        returned_documents=assessment.candidates,
        trials=describe_repeats(task, system, assessment),
    )


def score_sources(task: EvaluationSet) -> dict[str, Scores]:
    """Every source alone, by name: of equally good ones the order of systems must not choose."""
    names = sorted(drop_final(task.runs.sources, task.runs.roles))
    alone = [_list_alone(task, name) for name in names]
    scores = evaluate_systems(alone, task.runs, task.measures, limits=UNCACHED)
    return dict(zip(names, scores, strict=True))


def _list_alone(task: EvaluationSet, *names: str, title: str = "") -> System:
    """A list alone, or several, collapsed as the systems of the experiment collapse them."""
    system = System(name=title or names[0], runs=names)
    return collapse_alike(system, task.experiment.systems.values())


def list_results(
    task: EvaluationSet, assessed: Mapping[str, Assessment], sources: Mapping[str, Scores]
) -> Iterator[report_records.SystemResult]:
    """The rows of the systems, then those of floor and ceiling.

    Args:
        task: What was evaluated.
        assessed: By name of the system.
        sources: The values of each source alone.
    """
    columns = slice_values(task)
    if "type" in task.experiment.slices:
        columns["type"] = task.runs.types
    slices = []
    for field, column in columns.items():
        values, by_query = sort_field_values(column), np.array(column, dtype=object)
        slices += [(field, each, by_query == each) for each in values if len(values) > 1]
    for name, system in task.experiment.systems.items():
        yield _system_result(task, system, assessed[name], slices)
    yield from _reference_rows(task, sources)


def _reference_rows(
    task: EvaluationSet, sources: Mapping[str, Scores]
) -> Iterator[report_records.SystemResult]:
    """Floor and ceiling rows: best source of all, best source per query, perfect order.

    A single source is the best of all and of each query: then its row is left out where a system
    is this source alone, and that of each query always.
    """
    alone = [_list_alone(task, name) for name in sources]
    tuned = scores = [*sources.values()]
    if task.tuning is not None:
        tuned = [*evaluate_systems(alone, task.tuning, task.measures[:1], limits=UNCACHED)]
    chosen = int(np.argmax([float(score.values[0].mean()) for score in tuned]))
    where = task.tuning_split or task.split or ALL_QUERIES
    best = np.max([score.values for score in scores], axis=0)
    oracle = "the best of the sources for each query and measure; fusion may pass it"
    if len(alone) > 1:
        fixed, primary = _list_alone(task, *sources, title="fixed"), task.measures[0]
        variants = np.stack([score.values[0] for score in scores])
        chance = find_chance(fixed, task.runs, variants, primary)
        if chance is not None:
            oracle += f"; by chance alone {format_number(chance)} in {primary.name}: the best of "
            oracle += "as many random disturbances of rrf to the same mean"
    order = "all candidates of all sources in the order of their grades; nothing can pass it"
    bounds = find_system_bounds(alone[chosen], task.runs, task.measures)
    systems = task.experiment.systems.values()
    pools = [collapse_pool(runs, systems) for runs in task.runs.repeats]
    by_repeat = np.stack([perfect_order_values(pool, task.measures) for pool in pools])
    # The greatest mean over so many repeats as a list has: no system passes that over its own.
    counts = {*task.runs.repeat_counts.values()} or {1}
    perfect = np.max([repeat_variance.mean_of_repeats(by_repeat[:n]) for n in counts], axis=0)
    rows: list[tuple[str, Literal["floor", "ceiling"], str, FloatArray]] = [
        (f"best source (chosen on {where})", "floor", alone[chosen].name, scores[chosen].repeats),
        ("best source per query (oracle)", "ceiling", oracle, best[None]),
        ("perfect order", "ceiling", order, perfect[None]),
    ]
    if len(alone) == 1:
        has_source = any(s.resolved_config == alone[0].resolved_config for s in systems)
        rows = [rows[2]] if has_source else [rows[0], rows[2]]
    for name, kind, note, repeats in rows:
        values = repeat_variance.mean_of_repeats(repeats)
        judged = bounds if kind == "floor" else (None,) * len(bounds)
        measures = {
            m.name: _measure_result(task, m.name, values[i], repeats[:, i], bounds=judged[i])
            for i, m in enumerate(task.measures)
        }
        yield report_records.SystemResult(name=name, kind=kind, note=note, measures=measures)


def add_comparisons(
    collections: Sequence[report_records.Collection], settings: Mapping[str, Any]
) -> tuple[report_records.Collection, ...]:
    """The collections with every system against the baseline, measure by measure.

    The primary measure has the answer, and what unjudged documents could change in it.

    Args:
        collections: Their systems have values.
        settings: From :func:`read_inference_settings`.
    """
    tables = [each.table for each in collections]
    draws = {name: settings[name] for name in ("seed", "alpha")}
    return tuple(
        each.model_copy(
            update={
                "comparisons": tuple(
                    record_comparison(
                        item,
                        table.pair(item.candidate, item.measure).compare_unjudged(draws["alpha"]),
                    )
                    for item in results
                ),
                "first_group": find_first_group(table, **draws),
            }
        )
        for each, table, results in zip(
            collections, tables, compare_tables(tables, **settings), strict=True
        )
    )


def record_comparison(
    comparison: Comparison, unjudged: UnjudgedDifference | None
) -> report_records.ComparisonResult:
    """A comparison as a report has it.

    Args:
        comparison: One with an answer is of the primary measure.
        unjudged: What unjudged documents could change in it; None = nothing.
    """
    result = report_records.ComparisonResult.model_validate(comparison, from_attributes=True)
    return result.model_copy(update={"unjudged": unjudged and unjudged.record})


def perfect_order_values(runs: AlignedRuns, measures: Sequence[Measure]) -> FloatArray:
    """(M, Q): values of the candidate pool in the order of its grades: no fusion can do better."""
    # Judged documents stand above unjudged ones of the same gain, for measures that ask.
    placed = positions(
        np.maximum(runs.grades, 0).astype(np.float64),
        runs.offsets,
        tie_order=np.where(runs.judged, 0, 1),
    )
    return compute_measures(measures, runs, placed)


#: Halvings of the interval, of logarithms, in which the strength of the disturbance is sought.
HALVINGS: Final = 7
#: Standard deviations of a query's fused scores: what changes nothing, and an order at random.
WEAKEST, STRONGEST = 0.01, 8.0
#: Copies whose mean tells the strength.
PROBES: Final = 3
#: Between queries: no disturbed score of one reaches those of the next.
APART: Final = 1e4


def find_chance(
    fixed: System, runs: AlignedRuns, variants: FloatArray, measure: Measure, *, seed: int = 0
) -> float | None:
    """Mean of the counterpart of an oracle; None where classes of queries are ranked apart.

    Args:
        fixed: The fusion that is disturbed.
        runs: All sources of the dataset.
        variants: Shape (V, Q): the values that the oracle chooses from.
        measure: What they are values of.
        seed: Of the disturbances.
    """
    blocks = []
    for _, some in query_blocks(runs, [measure]):
        (_, plain, part), *others = plain_systems(fixed, some)
        if others:
            return None
        blocks.append(DisturbedRanking(rank_candidates(plain, part), measure))
    return measure_chance(blocks, variants, measure, seed=seed)


def measure_chance(
    blocks: Sequence[DisturbedRanking], variants: FloatArray, measure: Measure, *, seed: int = 0
) -> float:
    """Mean over queries of the best of V disturbed fixed rankings.

    Args:
        blocks: The ranking that is disturbed, of some queries each.
        variants: Shape (V, Q): the values that the oracle chooses from, of the same queries.
        measure: What they are values of.
        seed: Of the disturbances, which are independent normal ones.
    """
    limits = np.cumsum([len(block.keys) for block in blocks])
    noise = np.random.default_rng(seed).normal(size=(len(variants), limits[-1]))
    noises = np.split(noise, limits[:-1], axis=1)

    @cache
    def evaluate(copy: int, strength: float) -> FloatArray:
        return np.concatenate(
            [
                compute_measures([measure], block.runs, block.rank(strength * part[copy]))[0]
                for block, part in zip(blocks, noises, strict=True)
            ]
        )

    probes = range(min(PROBES, len(variants)))
    target, weak, strong = float(variants.mean()), WEAKEST, STRONGEST
    for _ in range(HALVINGS):
        middle = math.sqrt(weak * strong)
        mean = np.mean([evaluate(copy, middle) for copy in probes])
        weak, strong = (middle, strong) if mean > target else (weak, middle)
    best = evaluate(0, strong)
    for copy in range(1, len(variants)):
        best = np.maximum(best, evaluate(copy, strong))
    return float(best.mean())


class DisturbedRanking:
    """A ranking whose scores are disturbed.

    Args:
        fixed: The ranking.
        measure: What its order is measured by.
    """

    def __init__(self, fixed: SystemRanking, measure: Measure) -> None:
        self.runs = replace(fixed.runs)  # without what was derived from them
        self.reads_all = measure.required_ranks != "relevant" or measure.judged_only
        query = self.runs.query_index
        self.rows = np.lexsort((fixed.ranks_before_cut, query))
        self.keys = query * APART - _standardize(fixed.scores, query)

    def rank(self, disturbance: FloatArray) -> IntArray:
        """(N,): the 1-based positions; where scores are equal the fixed order stays.

        Where only the places of relevant documents count, those behind the last one have none: 0.

        Args:
            disturbance: Shape (N,): is added to the scores, in standard deviations of a query's.
        """
        keys = self.keys - disturbance
        last = np.full(len(self.runs.queries), np.inf if self.reads_all else -np.inf)
        relevant = relevant_candidates(self.runs)
        np.maximum.at(last, relevant.query, keys[relevant.rows])
        rows = self.rows[keys[self.rows] <= last[self.runs.query_index]]
        chosen = keys[rows]
        order = np.argsort(chosen)
        if (np.diff(chosen[order]) == 0).any():
            order = np.argsort(chosen, kind="stable")
        sizes = np.bincount(self.runs.query_index[rows], minlength=len(self.runs.queries))
        ranks = np.zeros(len(keys), dtype=np.int64)
        ranks[rows[order]] = count_within_queries(to_offsets(sizes))
        return ranks


def _standardize(scores: FloatArray, query: IntArray) -> FloatArray:
    """Scores in standard deviations of their query; 0 where all are equal, or there is none."""
    finite = np.where(np.isfinite(scores), scores, 0.0)
    sizes = np.maximum(np.bincount(query), 1)
    centered = finite - (np.bincount(query, finite) / sizes)[query]
    spread = np.sqrt(np.bincount(query, centered**2) / sizes)[query]
    return np.divide(centered, spread, out=np.zeros_like(centered), where=spread > 0)
