"""Which signal can carry a threshold: below it a system says that it has no answer.

Format history:
    1   first version
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from fusion_bench.config.json_records import OptionalFloat, ReportRecord
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.data.query_splits import hash_position, hashed_split
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.evaluation.prepared_dataset import (
    EvaluationSet,
    collection_facts,
    prepare_dataset,
)
from fusion_bench.evaluation.report_file import ExperimentRecord
from fusion_bench.evaluation.report_records import CollectionFacts
from fusion_bench.evaluation.run_experiment import report_provenance, select_systems
from fusion_bench.experiment.experiment import Experiment, find_datasets
from fusion_bench.experiment.system import merge_rules
from fusion_bench.io.dataset import load_dataset
from fusion_bench.measures.rankings import no_relevant
from fusion_bench.ranking.final_lists import list_parts
from fusion_bench.ranking.query_signals import LIST_TOP, compute_signals, mask_half
from fusion_bench.stats.thresholds import (
    FALSE_ANSWERS,
    MIN_KEPT,
    Share,
    Usability,
    adjust_holm,
    count_needed,
    find_threshold,
    judge_signal,
    measure_separation,
    measure_share,
    order_nan_last,
)
from fusion_bench.util.files import name_experiment
from fusion_bench.util.formatting import Progress, ignore_progress, pluralize

#: A signal of the user's own: aligned runs → one number per query.
SignalFunction: TypeAlias = Callable[[AlignedRuns], Sequence[float] | FloatArray]
#: First results that are looked at for an answer.
TOP: Final = 10
#: Hashed with the ids of queries and groups: which calibrate, which choose.
CALIBRATE, CHOOSE = "calibrate", "choose"
#: Points of a curve.
CURVE_POINTS: Final = 101


class ShareRecord(ReportRecord):
    """A share of queries with its 95 % interval.

    Attributes:
        share: The share; null without queries.
        low: Lower end.
        high: Upper end.
        queries: How many queries there are.
    """

    share: OptionalFloat
    low: float
    high: float
    queries: int


class SignalResult(ReportRecord):
    """What a threshold on one signal of one system does.

    Attributes:
        system: The system; empty for a signal of the user's own.
        signal: The signal.
        auc: Area under the curve: how likely an answerable query has a greater signal.
        auc_low: Lower end of its 95 % interval.
        auc_high: Upper end.
        p: One-sided, of an area above ½, over all signals (Holm).
        threshold: τ: a query is answered if its signal is greater; null = any signal at all.
        false_answers: Share of the unanswerable queries at hand that are answered.
        kept: Share of the answerable queries that are answered.
        found: Of these the share with a relevant document in the first ten results.
        usability: Whether it can carry a threshold.
        curve: Answered share of the answerable queries by that of the unanswerable ones.
    """

    system: str
    signal: str
    auc: float
    auc_low: float
    auc_high: float
    p: float
    threshold: float | None
    false_answers: float
    kept: ShareRecord
    found: ShareRecord
    usability: Usability
    curve: tuple[tuple[float, float], ...] = Field(repr=False)

    @property
    def label(self) -> str:
        """Its name with its system; systems share those of lists."""
        is_shared = not self.system or self.signal.startswith(LIST_TOP)
        return self.signal if is_shared else f"{self.signal} of {self.system}"


class ChosenSignal(ReportRecord):
    """The signal whose threshold is promised.

    Attributes:
        system: Its system.
        signal: The signal.
        is_stated: Whether the user named it, so that all queries calibrate it; otherwise it was
            chosen on half of the queries, and the other half calibrates it.
        threshold: τ; null = any signal at all.
        calibrating: Unanswerable queries that τ is from, one a group.
        calibrated_on: SHA-256 of their ids.
        kept: Share of the answerable queries, of the half that did not choose, that are answered.
    """

    system: str
    signal: str
    is_stated: bool
    threshold: float | None
    calibrating: int
    calibrated_on: str
    kept: ShareRecord


class ThresholdCollection(CollectionFacts):
    """Thresholds on one dataset.

    Attributes:
        is_masked: Whether the unanswerable queries are answerable ones without their relevant
            documents.
        answerable: Queries with a relevant document.
        unanswerable: Queries known to have none.
        units: Groups of these; as many as queries without groups.
        signals: Each signal of each system.
        chosen: The signal whose threshold is promised; null = there are too few queries to choose.
        reason: Why there is none; empty = there is one.
    """

    is_masked: bool
    answerable: int
    unanswerable: int
    units: int
    signals: tuple[SignalResult, ...]
    chosen: ChosenSignal | None
    reason: str = ""


class ThresholdReport(ExperimentRecord):
    """Which signals of an experiment's systems can carry a threshold.

    Attributes:
        settings: ``false_answers``, ``min_kept``, ``seed``.
        collections: One per dataset.
    """

    format: Literal["fusion-bench-threshold"] = "fusion-bench-threshold"
    format_version: Annotated[int, Field(ge=1)] = 1
    collections: tuple[ThresholdCollection, ...]


@dataclass(frozen=True)
class ThresholdSettings:
    """What is asked of a threshold.

    Attributes:
        false_answers: Share of the unanswerable queries that may be answered.
        min_kept: A signal that keeps less of the answerable queries cannot carry a threshold.
        mask: Make unanswerable queries of half of the answerable ones.
        signal: Only this signal: then all queries calibrate its threshold.
        functions: Signals of the user's own, by name.
        seed: Of the draws.
    """

    false_answers: float = FALSE_ANSWERS
    min_kept: float = MIN_KEPT
    mask: bool = False
    signal: str | None = None
    functions: Mapping[str, SignalFunction] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("false_answers", "min_kept"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise ConfigError(f"{name}: must be above 0 and below 1, not {value}")


def measure_thresholds(
    experiment: Experiment,
    source: Source,
    settings: ThresholdSettings,
    *,
    folders: Collection[Path],
    systems: Sequence[str] = (),
    dataset: str | None = None,
    progress: Progress = ignore_progress,
) -> ThresholdReport:
    """Find which signals of an experiment's systems can carry a threshold.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        settings: What is asked of a threshold.
        folders: Where named datasets live.
        systems: Names of the systems; empty = all.
        dataset: As the experiment names it; by default each of its datasets.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, or there are too few queries.
    """
    chosen = select_systems(experiment, systems, dataset)
    if systems:
        kept = {name: chosen.systems[name] for name in systems}
        chosen = chosen.model_copy(update={"systems": kept})
    collections = []
    used = chosen.systems.values()
    for _, path in find_datasets(chosen, source, folders):
        progress(f"reading {path.parent.name}", 0, 1)
        loaded = load_dataset(
            path,
            runs={name for system in used for name in system.base_runs},
            rerankers={name for system in used for name in system.reranker_names},
            every_query=True,
            merged=merge_rules(used),
        )
        task = prepare_dataset(chosen, source, loaded)
        collections.append(_measure_dataset(task, settings, progress))
    return ThresholdReport(
        name=name_experiment(source.path),
        settings={key: getattr(settings, key) for key in ("false_answers", "min_kept", "seed")},
        provenance=report_provenance(experiment, source),
        collections=tuple(collections),
    )


class _Queries(NamedTuple):
    """The queries of a threshold: those with an answer and those without.

    Attributes:
        runs: Aligned, of these queries only; masked where that is asked.
        answerable: Shape (Q,).
        calibrates: Shape (Q,): one unanswerable query a group.
    """

    runs: AlignedRuns
    answerable: BoolArray
    calibrates: BoolArray

    def subset(self, keep: BoolArray) -> _Queries:
        """Only some of the queries."""
        return _Queries(self.runs.subset(keep), self.answerable[keep], self.calibrates[keep])


def _measure_dataset(
    task: EvaluationSet, settings: ThresholdSettings, progress: Progress
) -> ThresholdCollection:
    queries = _find_queries(task, settings)
    signals: dict[tuple[str, str], FloatArray] = {}
    has_answer: dict[str, BoolArray] = {}
    for done, (name, system) in enumerate(task.experiment.systems.items()):
        progress(f"{task.dataset.name}: {name}", done, len(task.experiment.systems))
        fitted = task.fit_system(system)
        for signal, values in compute_signals(fitted, queries.runs).items():
            if not any(np.array_equal(values, each, equal_nan=True) for each in signals.values()):
                signals[name, signal] = values  # systems share the signals of their lists
        positions = np.zeros(len(queries.answerable), dtype=bool)
        for index, view, places in list_parts(fitted, queries.runs):
            is_hit = (places > 0) & (places <= TOP) & view.judged
            is_hit &= view.grades >= view.binary_relevance
            positions[index[view.query_index[is_hit]]] = True
        has_answer[name] = positions
    for name, function in (settings.functions or {}).items():
        signals["", name] = _call_signal(name, function, queries.runs)
    if settings.signal is not None:
        known = dict.fromkeys(signal for _, signal in signals)
        if settings.signal not in known:
            raise UnknownNameError("signal", settings.signal, known)
        signals = {key: each for key, each in signals.items() if key[1] == settings.signal}
    results = _describe_signals(signals, has_answer, queries, settings)
    chosen, reason = _choose_signal(signals, queries, settings)
    return ThresholdCollection(
        **collection_facts(task),
        is_masked=settings.mask,
        answerable=int(queries.answerable.sum()),
        unanswerable=int((~queries.answerable).sum()),
        units=len(set(queries.runs.groups)),
        signals=results,
        chosen=chosen,
        reason=reason,
    )


def _find_queries(task: EvaluationSet, settings: ThresholdSettings) -> _Queries:
    """The queries with and without an answer.

    Raises:
        ConfigError: No query is declared to have no answer.
        DataError: Too few have none, or one that is declared so has a relevant document.
    """
    runs, name = task.runs.repeats[0], task.dataset.name
    if settings.mask:
        runs, answerable = mask_half(runs)
    else:
        answerable = ~no_relevant(runs, runs.binary_relevance)
        declared = np.array([value == "false" for value in runs.values_of("answerable")])
        if (declared & answerable).any():
            query = runs.queries[int(np.argmax(declared & answerable))]
            raise DataError(
                f"{name}: query {query!r} is declared 'answerable: false' and has a relevant "
                "document: correct one of the two"
            )
        if task.dataset.spec.without_relevant == "unanswerable":
            qrels = task.dataset.qrels
            judged = {*(qrels.queries[row] for row in np.flatnonzero(np.diff(qrels.offsets)))}
            declared |= ~answerable & [query in judged for query in runs.queries]
        if not declared.any():
            raise ConfigError(
                f'{name}: no query is known to have no answer: write "answerable": false for '
                "such queries in queries.jsonl, or 'without_relevant: unanswerable' in "
                "dataset.yaml, or try --mask, which takes the relevant documents of half of the "
                "queries away"
            )
        keep = declared | answerable
        runs, answerable = runs.subset(keep), answerable[keep]
    first: dict[str, int] = {}
    for row in sorted(
        np.flatnonzero(~answerable).tolist(),
        key=lambda row: hash_position(runs.queries[row], CALIBRATE),
    ):
        first.setdefault(runs.groups[row], row)
    calibrates = np.zeros(len(answerable), dtype=bool)
    calibrates[[*first.values()]] = True
    needed = count_needed(settings.false_answers)
    if len(first) < needed or not answerable.any():
        unit = "groups of queries" if len(set(runs.groups)) < len(runs.groups) else "queries"
        raise DataError(
            f"{name}: {len(first):,} {unit} without an answer and "
            f"{pluralize(int(answerable.sum()), 'query')} with one are too few: a threshold for "
            f"{settings.false_answers:.0%} false answers needs {needed} without an answer"
        )
    return _Queries(runs, answerable, calibrates)


def _call_signal(name: str, function: SignalFunction, runs: AlignedRuns) -> FloatArray:
    """The values, (Q,), of a signal of the user's own.

    Raises:
        ConfigError: It fails, or does not return one number per query.
    """
    try:
        values = np.asarray(function(runs), dtype=np.float64)
    except Exception as error:
        raise ConfigError(f"signal {name!r}: {type(error).__name__}: {error}") from error
    if values.shape != (len(runs.queries),):
        raise ConfigError(
            f"signal {name!r}: must return one number per query, shape ({len(runs.queries)},), "
            f"not {values.shape}"
        )
    return values


def _describe_signals(
    signals: Mapping[tuple[str, str], FloatArray],
    has_answer: Mapping[str, BoolArray],
    queries: _Queries,
    settings: ThresholdSettings,
) -> tuple[SignalResult, ...]:
    """Each signal, with the threshold that all unanswerable queries give."""
    runs, answerable = queries.runs, queries.answerable
    separations = {
        key: measure_separation(values, answerable, runs.groups, seed=settings.seed)
        for key, values in signals.items()
    }
    adjusted = adjust_holm([each.p for each in separations.values()])
    results = []
    for ((system, signal), values), p in zip(signals.items(), adjusted, strict=True):
        threshold = find_threshold(values[queries.calibrates], settings.false_answers)
        kept, answered = _measure_kept(values, threshold, queries, settings.seed)
        found = has_answer.get(system, np.ones(len(values), dtype=bool))
        rows = np.flatnonzero(answerable & answered)
        separation = separations[system, signal]
        results.append(
            SignalResult(
                system=system,
                signal=signal,
                auc=separation.auc,
                auc_low=separation.low,
                auc_high=separation.high,
                p=p,
                threshold=_finite(threshold),
                false_answers=float(answered[~answerable].mean()),
                kept=_record(kept),
                found=_record(
                    measure_share(found[rows], [runs.groups[q] for q in rows], seed=settings.seed)
                ),
                usability=judge_signal(p, kept, settings.false_answers, settings.min_kept),
                curve=_trace_curve(values, answerable),
            )
        )
    return tuple(results)


def _measure_kept(
    values: FloatArray, threshold: float, queries: _Queries, seed: int
) -> tuple[Share, BoolArray]:
    """The share of answerable queries that are answered, and (Q,): which queries are."""
    answered = values > threshold  # NaN is not
    rows = np.flatnonzero(queries.answerable)
    keys = [queries.runs.groups[row] for row in rows]
    return measure_share(answered[rows], keys, seed=seed), answered


def _record(share: Share) -> ShareRecord:
    return ShareRecord(share=share.share, low=share.low, high=share.high, queries=share.queries)


def _finite(threshold: float) -> float | None:
    return threshold if np.isfinite(threshold) else None


def _trace_curve(values: FloatArray, answerable: BoolArray) -> tuple[tuple[float, float], ...]:
    """Shares of unanswerable and of answerable queries above each of some thresholds."""
    unanswerable, others = values[~answerable], values[answerable]
    shares = np.linspace(0, 1, CURVE_POINTS)
    ordered = np.sort(order_nan_last(unanswerable))[::-1]
    cuts = ordered[np.minimum((shares * len(ordered)).astype(int), len(ordered) - 1)]
    points = {(float((unanswerable > cut).mean()), float((others > cut).mean())) for cut in cuts}
    return tuple(sorted(points | {(1.0, 1.0)}))


def _choose_signal(
    signals: Mapping[tuple[str, str], FloatArray], queries: _Queries, settings: ThresholdSettings
) -> tuple[ChosenSignal | None, str]:
    """The signal whose threshold is promised; or none, and why.

    One that the user named is calibrated on all queries. Otherwise the one that keeps most on half
    of the queries is chosen, and calibrated on the other half.
    """
    if len(signals) == 1:
        key, everything = next(iter(signals)), np.ones(len(queries.answerable), dtype=bool)
        return _calibrate(key, signals[key], queries, everything, settings, is_stated=True), ""
    kinds = [str(each) for each in queries.answerable]
    split = hashed_split(queries.runs.groups, kinds, split_seed=CHOOSE)
    sizes = [int((queries.calibrates & half).sum()) for half in (split.tune, split.held_out)]
    has_both = all((queries.answerable & half).any() for half in (split.tune, split.held_out))
    needed = count_needed(settings.false_answers)
    if min(sizes) < needed or not has_both:
        return None, (
            f"to choose a signal takes half of the queries, and {min(sizes)} without an answer are "
            f"left where {needed} are needed: name the signal with --system and --signal"
        )
    best: tuple[float, tuple[str, str]] = (-1.0, next(iter(signals)))
    for key, values in signals.items():
        calibrating = values[queries.calibrates & split.tune]
        threshold = find_threshold(calibrating, settings.false_answers)
        kept = float((values[queries.answerable & split.tune] > threshold).mean())
        best = max(best, (kept, key), key=lambda each: each[0])
    key = best[1]
    return _calibrate(key, signals[key], queries, split.held_out, settings, is_stated=False), ""


def _calibrate(
    key: tuple[str, str],
    values: FloatArray,
    queries: _Queries,
    half: BoolArray,
    settings: ThresholdSettings,
    *,
    is_stated: bool,
) -> ChosenSignal:
    """A signal with the threshold that some of the queries give it."""
    calibrating = queries.calibrates & half
    threshold = find_threshold(values[calibrating], settings.false_answers)
    part = queries.subset(half)
    kept, _ = _measure_kept(values[half], threshold, part, settings.seed)
    ids = sorted(queries.runs.queries[row] for row in np.flatnonzero(calibrating))
    return ChosenSignal(
        system=key[0],
        signal=key[1],
        is_stated=is_stated,
        threshold=_finite(threshold),
        calibrating=len(ids),
        calibrated_on=hashlib.sha256("\n".join(ids).encode()).hexdigest(),
        kept=_record(kept),
    )
