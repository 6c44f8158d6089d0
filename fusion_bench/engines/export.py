"""A system as an engine's configuration; what the translation changes, by a replay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np

from fusion_bench.config.query_types import BY_INTENT, BY_TYPE
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.records import Condition, format_condition
from fusion_bench.engines.options import ExportOptions
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.assessment import assess_system
from fusion_bench.evaluation.export_records import ExportReport, ReplayRecord
from fusion_bench.evaluation.prepared_dataset import load_lists, prepare_dataset
from fusion_bench.evaluation.report_file import INFERENCE_KEYS
from fusion_bench.evaluation.results import record_comparison
from fusion_bench.experiment.abstain import FUSED_TOP
from fusion_bench.experiment.dialect import Configuration, Dialect, Fidelity, Translation, dialects
from fusion_bench.experiment.experiment import (
    Experiment,
    describe_switch,
    find_datasets,
    read_distinct_specs,
)
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_config import find_dataset
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.methods.fuse import KEYWORD, SEMANTIC, Trainable
from fusion_bench.ranking.final_lists import rank_queries
from fusion_bench.ranking.system_ranking import name_system_in_errors
from fusion_bench.stats.comparison_family import compare_family
from fusion_bench.stats.values import Pair
from fusion_bench.util.files import name_experiment
from fusion_bench.util.formatting import Progress, ignore_progress

Precision = Literal["float32", "float64"]
#: Relative difference up to which two scores are equal: sums of a few terms lose the last digits.
TOLERANCES: Mapping[Precision, float] = {"float32": 1e-6, "float64": 1e-11}
#: Relative difference up to which two factors are one: engines round single terms.
SAME_FACTOR = 1e-6
#: Absolute difference up to which scores about 0 are equal.
NEAR_ZERO = 1e-12


@dataclass(frozen=True, eq=False)
class ListChanges:
    """Differences of two systems' lists, query by query.

    Attributes:
        is_changed: Shape (Q,): another order, ties apart.
        is_other_set: Shape (Q,): those of them with other documents.
        is_tied: Shape (Q,): another order among documents of equal scores only.
    """

    is_changed: BoolArray
    is_other_set: BoolArray
    is_tied: BoolArray


@dataclass(frozen=True, eq=False)
class ScoredLists:
    """The lists of one system.

    Attributes:
        top: Shape (Q, K): document at each rank; -1 = none.
        keys: Shape (N,): query and document of each candidate, rising.
        scores: Shape (2, N): the final scores that decide the order, and the fused ones, which
            decide it where these are equal.
        tiers: Shape (N,): a candidate of a higher tier stands above, whatever its score.
        width: A key is query · width + document + 1.
    """

    top: IntArray
    keys: IntArray
    scores: FloatArray
    tiers: IntArray
    width: int

    def are_equal(self, first: IntArray, second: IntArray, tolerance: float) -> BoolArray:
        """Whether the scores of pairs of candidates are equal; not where one is no candidate."""
        last = len(self.keys) - 1
        i, j = (np.minimum(np.searchsorted(self.keys, keys), last) for keys in (first, second))
        are_known = (self.keys[i] == first) & (self.keys[j] == second)
        a, b = self.scores[:, i], self.scores[:, j]
        is_near = np.isclose(a, b, rtol=tolerance, atol=NEAR_ZERO).all(axis=0)
        return np.asarray(are_known & is_near & (self.tiers[i] == self.tiers[j]))


def find_changes(before: ScoredLists, after: ScoredLists, precision: Precision) -> ListChanges:
    """The differences of two systems' lists over the same runs, cut at the same rank.

    Args:
        before: Of the first system.
        after: Of the second one.
        precision: In which scores count as equal, by either system.
    """
    queries, ranks = np.nonzero(before.top != after.top)
    here, there = (
        queries * before.width + lists.top[queries, ranks] + 1 for lists in (before, after)
    )
    tolerance = TOLERANCES[precision]
    is_tie = before.are_equal(here, there, tolerance) | after.are_equal(here, there, tolerance)
    is_different = np.zeros(len(before.top), dtype=bool)
    is_different[queries] = True
    is_changed = np.zeros(len(before.top), dtype=bool)
    is_changed[queries[~is_tie]] = True
    is_other_set = (np.sort(before.top, axis=1) != np.sort(after.top, axis=1)).any(axis=1)
    return ListChanges(is_changed, is_changed & is_other_set, is_different & ~is_changed)


def rank_lists(system: System, runs: AlignedRuns, top: int) -> ScoredLists:
    """The final lists of a system.

    Args:
        system: Any system.
        runs: All sources of the dataset.
        top: So many documents of each list are kept.
    """
    tops = np.full((len(runs.queries), top), -1, dtype=np.int64)
    parts: list[tuple[IntArray, FloatArray, IntArray]] = []
    width = len(runs.vocabulary) + 1
    for index, ranking in rank_queries(system, runs):
        queries = index[ranking.runs.query_index]
        is_top = (ranking.positions > 0) & (ranking.positions <= top)
        documents = np.asarray(ranking.runs.documents, dtype=np.int64)
        tops[queries[is_top], ranking.positions[is_top] - 1] = documents[is_top]
        tiers = np.asarray(ranking.tiers, dtype=np.int64)
        scores = np.stack([ranking.sort_scores, ranking.fused.sort_scores])
        parts.append((queries * width + documents + 1, scores, tiers))
    keys, scores, tiers = (np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    return ScoredLists(tops, keys[order], scores[:, order], tiers[order], width)


#: So many documents at the top of each list are compared.
TOP = 10


def _replay_system(
    experiment: Experiment,
    source: Source,
    dataset: Dataset,
    system: System,
    exported: System,
    dialect: type[Dialect],
) -> ReplayRecord:
    """Evaluate the system and what was written of it on the same queries.

    Args:
        experiment: Gives measures, split, level and seed.
        source: Where it was read from.
        dataset: With every list that the two systems use.
        system: The system.
        exported: What its configuration does; under another name.
        dialect: Of that configuration.

    Raises:
        FusionBenchError: The dataset does not fit them.
    """
    changed = {
        "systems": {system.name: system, exported.name: exported},
        "baseline": system.name,
        "measures": experiment.measures[:1],
    }
    task = prepare_dataset(experiment.model_copy(update=changed), source, dataset)
    fitted = [task.fit_system(item) for item in (system, exported)]
    assessments = {
        item.name: assess_system(item, task.runs, task.measures, training=task.training)
        for item in (system, exported)
    }
    candidate, baseline = (
        assessments[item.name].primary_values(task.repeat_lists(item))
        for item in (exported, system)
    )
    pair = Pair(
        candidate,
        baseline,
        task.runs.groups,
        (exported.name, system.name),
        measure=task.measures[0].name,
        is_bounded=task.measures[0].is_bounded,
        kind=task.judgment_kind,
    )
    settings = task.experiment.model_dump(include=set(INFERENCE_KEYS))
    [comparison] = compare_family([pair], **settings)
    before, after = (rank_lists(item, task.runs, TOP) for item in fitted)
    changes = find_changes(before, after, dialect.precision)
    return ReplayRecord(
        dataset=dataset.name,
        fingerprint=dataset.fingerprint,
        split=task.split,
        query_type=task.experiment.query_type,
        where=dict(task.experiment.where),
        queries=len(task.runs.queries),
        groups=len(set(task.runs.groups)),
        alpha=experiment.alpha,
        min_gain=experiment.min_gain,
        system_mean=float(assessments[system.name].values[0].mean()),
        export_mean=float(assessments[exported.name].values[0].mean()),
        comparison=record_comparison(comparison, pair.compare_unjudged(experiment.alpha)),
        top=TOP,
        changed_queries=int(changes.is_changed.sum()),
        changed_sets=int(changes.is_other_set.sum()),
        tied_queries=int(changes.is_tied.sum()),
    )


#: Engines that are suggested, the first that fits.
COMMON = ("elasticsearch", "opensearch", "llamaindex")


def choose_class(system: System, query_type: str | None, intent: str | None) -> System:
    """The plain system of a query type or an intent; the system itself where none is asked for.

    Raises:
        UnknownNameError: It has no numbers of that type or intent.
    """
    for key, name in ((BY_TYPE, query_type), (BY_INTENT, intent)):
        if name is None:
            continue
        known = (system.query_classes or ()) if system.class_key is key else ()
        if name not in known:
            raise UnknownNameError(key.title, name, known, where=f"system {system.name!r}")
        return system.of_class(name)
    return system


def translate_system(
    dialect: type[Dialect], system: System, roles: Mapping[str, frozenset[str]]
) -> Translation:
    """The nearest system of a dialect.

    Args:
        dialect: The engine's.
        system: Any system.
        roles: Of its sources, by name; a source that is left out has none.

    Raises:
        ConfigError: Its weights do not fit its sources.
    """
    if system.stages:
        listed = ", ".join(system.stages)
        reason = f"stages: {dialect.title} fuses its own lists in one step ({listed})"
        return Translation("unsupported", (reason,))
    parts = [part.fusion for part in (system.class_configs or {}).values()] or [system.fusion]
    for fusion in parts:
        if isinstance(fusion, Trainable):
            reason = f"fusion: {dialect.title} cannot learn: {fusion.method!r} is trained"
            return Translation("unsupported", (reason,))
    known = {name: roles.get(name, frozenset()) for name in system.runs}
    with name_system_in_errors(system):
        return dialect.translate(system, known)


def suggest_engine(system: System) -> type[Dialect] | None:
    """An engine to write a system for: its own, or one of :data:`COMMON` that has its fusion.

    None where it reads one list only, or where none of these can do it.
    """
    if len(system.runs) < 2:
        return None
    if system.dialect is not None:
        return dialects.find_plugin(system.dialect)
    for name in COMMON:
        dialect = dialects.find_plugin(name)
        # Weights by role need the dataset: then the command itself finds out.
        with suppress(ConfigError):
            if translate_system(dialect, system, {}).system is None:
                continue
        return dialect
    return None


@dataclass(frozen=True)
class ExportData:
    """The datasets that a system is replayed on.

    Attributes:
        roles: Of the sources, by name.
        conditions: When each source is on that is not on for every query, by name.
        is_judged: Whether they have judgments, without which nothing is replayed.
        load: Loads each dataset with the lists that the systems use; None = there is none.
    """

    roles: Mapping[str, frozenset[str]]
    load: Callable[[Collection[System]], Iterable[Dataset]] | None = None
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    is_judged: bool = True


def export_system(
    experiment: Experiment, source: Source, system: System, data: ExportData, options: ExportOptions
) -> ExportReport:
    """Write a system for an engine; replay it where the order may change.

    Args:
        experiment: Gives name, measures, split, level and seed.
        source: Where it was read from.
        system: The system.
        data: What it is replayed on.
        options: What to write.

    Raises:
        UnknownNameError: No such engine, list, query type or intent.
        ConfigError: Nothing says how a list is searched, and the engine needs that.
        FusionBenchError: The system does not fit the data.
    """
    dialect = dialects.find_plugin(options.engine)
    system = choose_class(system, options.query_type, options.intent)
    if options.vector:
        data = replace(data, roles=_name_searches(system, data.roles, options.vector))
    cut, translation = _translate_cut(dialect, system, data)
    nearest = translation.system
    configuration, abstains = Configuration({}), ""
    if nearest is not None:
        if system.abstain is not None:
            nearest, abstains = _carry_threshold(dialect, cut, nearest, data)
        _require_searches(dialect, nearest, data.roles)
        configuration = dialect.write_by_role(nearest, data.roles)
    not_replayed = _why_not(translation, data, options)
    replays: tuple[ReplayRecord, ...] = ()
    if not_replayed is None and nearest is not None and data.load is not None:
        exported = nearest.model_copy(update={"name": f"{system.name} in {dialect.title}"})
        replays = tuple(
            _replay_system(selected, source, dataset, system, exported, dialect)
            for dataset in data.load((system, exported))
            for selected in [_select_queries(experiment, dataset, options)]
        )
    switched = [system.name] if system.name in experiment.switched_systems else []
    return ExportReport(
        name=name_experiment(source.path),
        system=system.name,
        query_type=options.query_type,
        intent=options.intent,
        engine=dialect.name,
        title=dialect.title,
        version=dialect.version,
        source=dialect.source,
        precision=dialect.precision,
        fidelity=translation.fidelity,
        reasons=translation.reasons,
        notes=(
            *([f"{describe_switch(switched)}."] if switched else []),
            *configuration.notes,
            *([abstains] if abstains else []),
            *_note_conditions(system, data),
        ),
        config=None if nearest is None else nearest.resolved_config,
        files={
            name: f"{_comment(name, describe_switch(switched))}{text}" if switched else text
            for name, text in configuration.files.items()
        },
        replays=replays,
        not_replayed=not_replayed,
    )


def _carry_threshold(
    dialect: type[Dialect], system: System, nearest: System, data: ExportData
) -> tuple[System, str]:
    """The engine's system with the threshold as its minimum score, if that works, and a note on it.

    Args:
        dialect: The engine's.
        system: It abstains.
        nearest: The same in the engine's terms.
        data: Shows by what factor the engine's scores differ.

    Raises:
        ConfigError: The threshold is not known yet.
    """
    if system.abstain is None:
        return nearest, ""
    signal, above = system.abstain.signal, system.abstain.find_threshold(system.name)
    factor = None
    if signal != FUSED_TOP:
        reason = f"a minimum score drops documents, and refuses no query by {signal}"
    elif not dialect.minimum_score:
        reason = f"{dialect.title} has no minimum of the fused score"
    elif not isinstance(nearest.blend, NoBlend):
        reason = f"{dialect.minimum_score.partition(' ')[0]} compares the final score, not {signal}"
    elif data.load is None:
        reason = "no dataset shows by what factor the engine's scores differ"
    else:
        factor = _find_factor(system, nearest, data.load((system, nearest)))
        reason = "the engine's fused scores are no multiple of ours"
    if factor is None:
        return nearest, (
            f"abstain: {reason}: compare {signal} with {above:g} in the application, and answer "
            "if it is above, as 'answered' of fb.Pipeline does."
        )
    number = np.float32 if dialect.precision == "float32" else np.float64
    limit = float(np.nextafter(number(factor * above), number(np.inf)))
    abstain = system.abstain.model_copy(update={"above": limit})
    return nearest.model_copy(update={"abstain": abstain}), (
        f"abstain: {dialect.minimum_score} is {limit:.9g}, just above {above:.6g} × {factor:.6g}. "
        "No document is left exactly if the query is not answered; from other lists it drops the "
        "documents below."
    )


def _find_factor(system: System, nearest: System, datasets: Iterable[Dataset]) -> float | None:
    """By what the engine multiplies every fused score; None = by no one factor."""
    columns = []
    for dataset in datasets:
        runs = dataset.with_every_query().aligned(system.base_runs)
        before, after = (rank_lists(each, runs, TOP) for each in (system, nearest))
        if not np.array_equal(before.keys, after.keys):
            return None
        columns.append((before.scores[1], after.scores[1]))
    ours, theirs = (np.concatenate(each) for each in zip(*columns, strict=True))
    if not ours.any():
        return None
    factor = float(np.median(theirs[ours != 0] / ours[ours != 0]))
    is_one = factor > 0 and np.allclose(theirs, factor * ours, rtol=SAME_FACTOR, atol=NEAR_ZERO)
    return factor if is_one else None


#: End of a file's name → what begins a comment in it.
COMMENTS: Final = {
    **dict.fromkeys((".py", ".sd", ".env"), "#"),
    **dict.fromkeys((".ts", ".java"), "//"),
    ".sql": "--",
}


def _comment(name: str, text: str) -> str:
    """A first line with a comment; nothing in JSON, which has none."""
    start = next((each for end, each in COMMENTS.items() if name.endswith(end)), None)
    return "" if start is None else f"{start} {text}\n"


def _name_searches(
    system: System, roles: Mapping[str, frozenset[str]], vectors: Collection[str]
) -> dict[str, frozenset[str]]:
    """The roles with those of ``--vector``: of the other lists, those without a role search text.

    Raises:
        UnknownNameError: There is no such list.
    """
    for name in vectors:
        if name not in system.base_runs:
            raise UnknownNameError("list", name, system.base_runs, where="--vector")
    named = {name: roles.get(name) or frozenset({KEYWORD}) for name in system.base_runs}
    return {**roles, **named, **{name: named[name] - {KEYWORD} | {SEMANTIC} for name in vectors}}


def _require_searches(
    dialect: type[Dialect], system: System, roles: Mapping[str, frozenset[str]]
) -> None:
    """Refuse to guess how several lists are searched: each would be written as a search for words.

    Raises:
        ConfigError: A list has no role.
    """
    unknown = [name for name in system.runs if not roles.get(name)]
    if dialect.searches_by_role and unknown and len(system.runs) > 1:
        raise ConfigError(
            f"runs: {', '.join(unknown)}: no role tells a search by words from one by vectors: "
            f"name the vector searches, such as --vector {unknown[-1]}, or give the runs roles in "
            f"dataset.yaml: roles: [{SEMANTIC}] and roles: [{KEYWORD}]"
        )


def _note_conditions(system: System, data: ExportData) -> Iterator[str]:
    """Sources that the application has to leave out for some queries."""
    for name in system.base_runs:
        if name in data.conditions:
            condition = format_condition(data.conditions[name])
            yield f"{name} is on where ({condition}): leave it out of the request of other queries"


def _translate_cut(
    dialect: type[Dialect], system: System, data: ExportData
) -> tuple[System, Translation]:
    """Set the depth of the longest lists if a system sets none, and translate the system.

    A search engine has more documents than the lists that were evaluated, so a window is needed.
    """
    given = system.depth if isinstance(system.depth, Mapping) else {}
    missing = [name for name in system.runs if given.get(name) is None]
    if not missing or isinstance(system.depth, int) or system.stages:
        return system, translate_system(dialect, system, data.roles)
    if data.load is None:
        translation = translate_system(dialect, system, data.roles)
        fidelity = max(translation.fidelity, "approximate", key=get_args(Fidelity).index)
        reason = "depth: none is set, and no dataset says how long the lists are"
        reasons = (*translation.reasons, reason)
        return system, replace(translation, fidelity=fidelity, reasons=reasons)
    runs = [run for dataset in data.load((system,)) for run in dataset.runs.values()]
    lengths = {
        name: max(int(np.diff(run.offsets).max(initial=1)) for run in runs if run.name == name)
        for name in missing
    }
    longest = max(lengths.values())
    depth = {**given, **dict.fromkeys(missing, longest)} if given else longest
    cut = system.model_copy(update={"depth": depth})
    translation = translate_system(dialect, cut, data.roles)
    reason = (
        f"depth: none is set; the longest list of the dataset has {longest} documents, so this "
        "many of a list are fetched"
    )
    return cut, replace(translation, reasons=(*translation.reasons, reason))


def _why_not(translation: Translation, data: ExportData, options: ExportOptions) -> str | None:
    """Why nothing is replayed; None = it is."""
    if translation.system is None:
        return "nothing was written"
    if options.replay is False:
        return "not asked for"
    if options.replay is None and translation.fidelity != "approximate":
        return "not needed: the order is equal on any lists"
    if not data.is_judged:
        return "nothing is judged"
    return None if data.load is not None else "no dataset is known"


def _select_queries(experiment: Experiment, dataset: Dataset, options: ExportOptions) -> Experiment:
    """The experiment on queries of a type or an intent, where the dataset has such."""
    changed: dict[str, object] = {}
    known = dataset.queries.values()
    if options.query_type is not None and options.query_type in {query.type for query in known}:
        changed["query_type"] = options.query_type
    if options.intent is not None and options.intent in {query.intent for query in known}:
        changed["where"] = {**experiment.where, "intent": (options.intent,)}
    return experiment.model_copy(update=changed)


def export_experiment(
    experiment: Experiment,
    source: Source,
    options: ExportOptions,
    *,
    folders: Collection[Path],
    progress: Progress = ignore_progress,
) -> ExportReport:
    """Write a system of an experiment for an engine; replay it where the order may change.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        options: What to write.
        folders: Where named datasets live.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, or a name is unknown.
    """
    systems, name = experiment.systems, options.system
    if name is None:  # the only one, or that of a tuned.yaml
        preferred = [known for known in systems if known.startswith(f"{experiment.baseline} tuned")]
        name = next(iter([*preferred, *(systems if len(systems) == 1 else ())]), None)
    if name is None:
        raise ConfigError(f"--system: name one of the systems: {', '.join(systems)}")
    chosen = experiment.find_system(name)
    changed = {"systems": {chosen.name: chosen}, "baseline": chosen.name}
    alone = experiment.model_copy(update=changed)
    data = _find_data(alone, source, folders, options.dataset, progress)
    return export_system(alone, source, chosen, data, options)


def _find_data(
    experiment: Experiment,
    source: Source,
    folders: Collection[Path],
    dataset: str | None,
    progress: Progress,
) -> ExportData:
    """The datasets; none where the experiment's own are not there.

    Raises:
        UnknownNameError: A dataset that was asked for is not there.
        ConfigError: The system does not fit one.
    """
    try:
        if dataset is None:
            paths = [path for _, path in find_datasets(experiment, source, folders)]
        else:
            paths = [find_dataset(dataset, folders, where="--dataset")]
    except UnknownNameError:
        if dataset is not None:
            raise
        return ExportData({})
    roles: dict[str, frozenset[str]] = {}
    conditions: dict[str, Condition] = {}
    is_judged = True
    for spec in read_distinct_specs(paths):
        is_judged = is_judged and spec.qrels is not None
        experiment.check_datasets(spec.run_roles, spec.rerank, source)
        roles = spec.run_roles | roles  # of the first dataset that has the run
        conditions = {name: run.when for name, run in spec.runs.items() if run.when} | conditions

    def load(systems: Collection[System]) -> Iterator[Dataset]:
        for path in paths:
            yield load_lists(path, systems, progress, needs_judgments=False)

    return ExportData(roles, load, conditions, is_judged)
