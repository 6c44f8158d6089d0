"""Which signal can carry a threshold: below it a system says that it has no answer.

Format history:
    1   first version
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
from pydantic import Field

from fusion_bench.config.json_records import OptionalFloat, ReportRecord
from fusion_bench.config.yaml_files import Source, format_compact_yaml, read_yaml
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.evaluation.answered_queries import (
    NO_UNANSWERABLE,
    ThresholdQueries,
    choose_one_each,
    find_queries,
    split_to_choose,
)
from fusion_bench.evaluation.crag import system_evidence
from fusion_bench.evaluation.prepared_dataset import (
    EvaluationSet,
    add_unjudged_queries,
    collection_facts,
)
from fusion_bench.evaluation.report_file import ExperimentRecord
from fusion_bench.evaluation.report_records import CollectionFacts
from fusion_bench.evaluation.run_experiment import (
    prepare_datasets,
    report_provenance,
    select_systems,
)
from fusion_bench.experiment.abstain import LIST_TOP, Abstain
from fusion_bench.experiment.experiment import Experiment, find_datasets, relocate_dataset
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.fingerprints import query_digests
from fusion_bench.io.looks import record_shown
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.query_signals import compute_signals
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.inference import infer_family
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
    order_nan_last,
)
from fusion_bench.stats.values import Pair
from fusion_bench.util.digests import hash_values
from fusion_bench.util.files import name_experiment, resolve_path
from fusion_bench.util.formatting import Progress, ignore_progress, list_names, pluralize

#: A signal of the user's own: aligned runs → one number per query.
SignalFunction: TypeAlias = Callable[[AlignedRuns], Sequence[float] | FloatArray]
#: Whether the first results hold an answer.
SUCCESS: Final = "Success@10"
#: Best rerank score of the top of the final list on the unit scale, if there is ``crag``.
CRAG_SCORE: Final = "crag score"
#: Points of a curve.
CURVE_POINTS: Final = 101


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
    kept: Share
    found: Share
    usability: Usability
    curve: tuple[tuple[float, float], ...] = Field(repr=False)

    @property
    def label(self) -> str:
        """Its name with its system; systems share those of lists."""
        is_shared = not self.system or self.signal.startswith(LIST_TOP)
        return self.signal if is_shared else f"{self.signal} of {self.system}"


class SignalComparison(ReportRecord):
    """The chosen signal against the second best: the same answerable queries, each at its own τ.

    Attributes:
        system: The system of the second best.
        signal: The second best signal on the queries that chose.
        difference: Share of the queries that the chosen signal keeps, minus that of the other.
        low: Lower end of its 95 % interval; null = the two differ on too few queries.
        high: Upper end.
        p: Two-sided.
    """

    system: str
    signal: str
    difference: float
    low: OptionalFloat
    high: OptionalFloat
    p: float


class ChosenSignal(ReportRecord):
    """The signal whose threshold is promised.

    Attributes:
        system: Its system.
        signal: The signal.
        is_stated: Whether the user named it, so that all queries calibrate it; otherwise it was
            chosen on half of the queries, and the other half calibrates it.
        threshold: τ; null = any signal at all.
        calibrating: Unanswerable queries that τ is from, one a group.
        calibrated_on: SHA-256 of the digests of their ids.
        crag_lower: Of the CRAG score: at most the same share of the answerable queries is below it;
            null = of another signal, or of too few answerable queries.
        kept: Share of the answerable queries, of the half that did not choose, that are answered.
        against: Compared with the second best; null = there is no other.
    """

    system: str
    signal: str
    is_stated: bool
    threshold: float | None
    calibrating: int
    calibrated_on: str
    crag_lower: OptionalFloat = None
    kept: Share
    against: SignalComparison | None = None

    def to_abstain(self, false_answers: float) -> Abstain:
        """The threshold as ``abstain`` of its system, with the share that it promises."""
        return Abstain(
            signal=self.signal,
            above=self.threshold,
            promised_false_answers=false_answers,
            calibrated_on=self.calibrated_on,
        )


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
        false_answers: Share of the unanswerable queries that may be answered; None = that of the
            system's ``abstain``, or a tenth.
        min_kept: A signal that keeps less of the answerable queries cannot carry a threshold.
        mask: Make unanswerable queries of half of the answerable ones.
        signal: Only this signal: then all queries calibrate its threshold; None = that of the
            system's ``abstain``, or every signal.
        among: Without ``signal``, only these; empty = every signal.
        functions: Signals of the user's own, by name.
        seed: Of the draws.
    """

    false_answers: float | None = None
    min_kept: float = MIN_KEPT
    mask: bool = False
    signal: str | None = None
    among: tuple[str, ...] = ()
    functions: Mapping[str, SignalFunction] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("false_answers", "min_kept"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise ConfigError(f"{name}: must be above 0 and below 1, not {value}")

    @property
    def limit(self) -> float:
        """Share of the unanswerable queries that may be answered."""
        return FALSE_ANSWERS if self.false_answers is None else self.false_answers


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
    chosen, settings = _follow_abstain(chosen, settings)
    tasks = prepare_datasets(chosen, source, folders=folders, progress=progress)
    every = map(add_unjudged_queries, tasks)
    return ThresholdReport(
        name=name_experiment(source.path),
        settings={
            "false_answers": settings.limit,
            "min_kept": settings.min_kept,
            "seed": settings.seed,
        },
        provenance=report_provenance(experiment, source),
        collections=tuple(_measure_dataset(task, settings, progress) for task in every),
    )


def _follow_abstain(
    experiment: Experiment, settings: ThresholdSettings
) -> tuple[Experiment, ThresholdSettings]:
    """The experiment and the settings with the one system that states its signal, if there is one.

    Raises:
        ConfigError: Several systems state a signal, or the share of false answers is another one.
    """
    stated = {
        name: system.abstain
        for name, system in experiment.systems.items()
        if system.abstain is not None and system.abstain.false_answers is not None
    }
    if settings.signal is not None or not stated:
        return experiment, settings
    if len(stated) > 1:
        raise ConfigError(
            f"systems {list_names([*stated])} have 'abstain' with 'false_answers': choose one with "
            "--system"
        )
    [(name, abstain)] = stated.items()
    if settings.false_answers not in {None, abstain.false_answers}:
        raise ConfigError(
            f"--false-answers: system {name!r} has abstain.false_answers "
            f"{abstain.false_answers:g}, given {settings.false_answers:g}: leave the option out"
        )
    settings = replace(settings, false_answers=abstain.false_answers, among=abstain.names)
    return experiment.model_copy(update={"systems": {name: experiment.systems[name]}}), settings


def format_threshold_experiment(
    report: ThresholdReport,
    experiment: Experiment,
    source: Source,
    *,
    file: Path,
    folders: Collection[Path],
) -> str:
    """The experiment as YAML, with the promised threshold as ``abstain`` of its system.

    Args:
        report: Of the experiment.
        experiment: The experiment.
        source: Where it was read from.
        file: Where the YAML is written to: paths of datasets start there.
        folders: Where named datasets live.

    Raises:
        ConfigError: No threshold is promised, or several are.
    """
    chosen = [each.chosen for each in report.collections if each.chosen is not None]
    problem = ""
    if len(report.collections) > 1:
        problem = "each dataset has a threshold of its own: choose one with --dataset"
    elif report.collections[0].is_masked:
        problem = (
            "the unanswerable queries are masked, which are easier than real ones: mark real ones "
            "in queries.jsonl, and leave out --mask"
        )
    elif not chosen:
        problem = report.collections[0].reason
    elif chosen[0].signal == CRAG_SCORE:
        problem = "the CRAG score belongs to 'crag': write the thresholds that are printed"
    elif chosen[0].threshold is None:
        problem = f"{chosen[0].signal}: any value is above the threshold: choose another signal"
    if problem:
        raise ConfigError(f"--save: no threshold to save: {problem}")
    abstain = chosen[0].to_abstain(report.settings["false_answers"])
    systems, name = source.data["systems"], chosen[0].system
    changed = {**systems, name: {**systems[name], "abstain": abstain.model_dump()}}
    places = [
        relocate_dataset(given, path, file.parent)
        for given, path in find_datasets(experiment, source, folders)
    ]
    data: dict[str, Any] = {**source.data, "systems": changed}
    key = "datasets" if experiment.dataset is None else "dataset"
    data[key] = places if experiment.dataset is None else places[0]
    if ("split",) in source.overrides:  # it chose the queries that set the threshold
        del data["split"]
        data |= {n: each for n, each in read_yaml(source.path).data.items() if n == "split"}
    tune = experiment.tune
    if tune is not None and tune.looks.file is not None and not Path(tune.looks.file).is_absolute():
        ledger = resolve_path(source.path.parent / tune.looks.file)
        place = os.path.relpath(ledger, resolve_path(file.parent))
        data["tune"] = {**data["tune"], "looks": {**data["tune"]["looks"], "file": place}}
    return format_compact_yaml(data)


def _measure_dataset(
    task: EvaluationSet, settings: ThresholdSettings, progress: Progress
) -> ThresholdCollection:
    queries = find_queries(task, mask=settings.mask)
    _require_enough(queries, task.dataset.name, settings.limit)
    signals: dict[tuple[str, str], FloatArray] = {}
    has_answer: dict[str, BoolArray] = {}
    success = parse_measure(SUCCESS, binary_relevance=queries.runs.binary_relevance)
    for done, (name, system) in enumerate(task.experiment.systems.items()):
        progress(f"{task.dataset.name}: {name}", done, len(task.experiment.systems))
        fitted = task.fit_system(system)
        for signal, values in compute_signals(fitted, queries.runs).items():
            if not any(np.array_equal(values, each, equal_nan=True) for each in signals.values()):
                signals[name, signal] = values  # systems share the signals of their lists
        crag = task.experiment.crag
        if crag and (evidence := system_evidence(fitted, queries.runs, crag)):
            signals[name, CRAG_SCORE] = evidence.scores
        [scores] = evaluate_systems([fitted], queries.runs, [success])
        has_answer[name] = scores.values[0] > 0
    for name, function in (settings.functions or {}).items():
        signals["", name] = _call_signal(name, function, queries.runs)
    if names := settings.among if settings.signal is None else (settings.signal,):
        known = dict.fromkeys(signal for _, signal in signals)
        if not known.keys() & names:
            raise UnknownNameError("signal", names[0], known)
        signals = {key: each for key, each in signals.items() if key[1] in names}
    results = _describe_signals(signals, has_answer, queries, settings)
    chosen, reason = _choose_signal(signals, queries, settings, task.dataset)
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


def _require_enough(queries: ThresholdQueries, name: str, false_answers: float) -> None:
    """Refuse too few queries for a threshold.

    Raises:
        ConfigError: No query is known to have no answer.
        DataError: Too few have none, or none has one.
    """
    if queries.answerable.all():
        raise ConfigError(
            f"{name}: {NO_UNANSWERABLE}, or try --mask, which takes the relevant documents of half "
            "of the queries away"
        )
    needed, units = count_needed(false_answers), int(queries.calibrates.sum())
    answerable, groups = int(queries.answerable.sum()), queries.runs.groups
    if units < needed or not answerable:
        unit = "groups of queries" if len(set(groups)) < len(groups) else "queries"
        raise DataError(
            f"{name}: {units:,} {unit} without an answer and {pluralize(answerable, 'query')} with "
            f"one are too few: a threshold for {false_answers:.0%} false answers needs {needed} "
            "without an answer"
        )


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
    queries: ThresholdQueries,
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
        threshold = find_threshold(values[queries.calibrates], settings.limit)
        answered = values > threshold  # NaN is not
        kept = queries.measure_share(answered, answerable, settings.seed)
        found = has_answer.get(system, np.ones(len(values), dtype=bool))
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
                kept=kept,
                found=queries.measure_share(found, answerable & answered, settings.seed),
                usability=judge_signal(p, kept, settings.limit, settings.min_kept),
                curve=_trace_curve(values, answerable),
            )
        )
    return tuple(results)


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
    signals: Mapping[tuple[str, str], FloatArray],
    queries: ThresholdQueries,
    settings: ThresholdSettings,
    dataset: Dataset,
) -> tuple[ChosenSignal | None, str]:
    """The signal whose threshold is promised; or none, and why.

    One that the user named is calibrated on all queries. Otherwise the one that keeps most on half
    of the queries is chosen, and calibrated on the other half.
    """
    parts = (np.ones(len(queries.answerable), dtype=bool),) * 2
    if len(signals) > 1:
        split = split_to_choose(queries)
        parts = (split.tune, split.held_out)
    known = None if settings.mask else dataset
    chosen, reason = choose_signal(signals, queries, parts, settings, known)
    return chosen, reason and f"{reason}: name the signal with --system and --signal"


def choose_signal(
    signals: Mapping[tuple[str, str], FloatArray],
    queries: ThresholdQueries,
    parts: tuple[BoolArray, BoolArray],
    settings: ThresholdSettings,
    dataset: Dataset | None,
) -> tuple[ChosenSignal | None, str]:
    """The signal that keeps most on one part of the queries, with the threshold of the other part.

    Args:
        signals: By system and name, each of shape (Q,); one alone is not chosen.
        queries: The queries.
        parts: Shape (Q,) each: those that choose, and those that calibrate.
        settings: What is asked of the threshold.
        dataset: Its ledger gets the queries that calibrate; None = no ledger does.

    Returns:
        The signal, or None and why there is none.
    """
    least = min(int((queries.calibrates & part).sum()) for part in parts)
    needed = count_needed(settings.limit)
    if least < needed or not all((queries.answerable & part).any() for part in parts):
        return None, (
            f"to choose a signal takes half of the queries, and {least} without an answer are left "
            f"where {needed} are needed"
        )
    chooses, calibrates = parts
    kept = {
        key: float(_answer(values, queries, chooses, settings)[queries.answerable & chooses].mean())
        for key, values in signals.items()
    }
    best, *others = sorted(signals, key=lambda key: -kept[key])  # earlier declared ones first
    answered = _answer(signals[best], queries, calibrates, settings)
    kind, against = queries.answerable & calibrates, None
    if others:
        second = _answer(signals[others[0]], queries, calibrates, settings)
        flips = answered[kind].astype(np.float64) - second[kind]
        pair = Pair.from_arrays(flips, keys=queries.list_groups(kind), is_bounded=True)
        [row] = infer_family([pair], seed=settings.seed)
        against = SignalComparison(
            system=others[0][0],
            signal=others[0][1],
            difference=row.mean,
            low=row.low if row.has_interval else None,
            high=row.high if row.has_interval else None,
            p=row.p,
        )
    calibrating, crag_lower = queries.calibrates & calibrates, None
    ids = queries.list_ids(calibrating)
    if dataset is not None:
        record_shown(dataset.folder, dataset.qrels, ids, as_set=True)
    if best[1] == CRAG_SCORE:
        units = choose_one_each(queries.runs, queries.answerable & calibrates)
        if units.sum() >= count_needed(settings.limit):
            lost = -order_nan_last(signals[best][units])  # without a score it is 'incorrect'
            crag_lower = _finite(-find_threshold(lost, settings.limit))
    chosen = ChosenSignal(
        system=best[0],
        signal=best[1],
        is_stated=not others,
        threshold=_finite(find_threshold(signals[best][calibrating], settings.limit)),
        calibrating=len(ids),
        calibrated_on=hash_values(query_digests(ids)),
        crag_lower=crag_lower,
        kept=queries.measure_share(answered, kind, settings.seed),
        against=against,
    )
    return chosen, ""


def _answer(
    values: FloatArray, queries: ThresholdQueries, part: BoolArray, settings: ThresholdSettings
) -> BoolArray:
    """(Q,): the queries above the threshold that a part of the queries gives a signal."""
    threshold = find_threshold(values[queries.calibrates & part], settings.limit)
    return np.asarray(values > threshold)  # NaN is not
