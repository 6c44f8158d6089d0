"""A system as an engine's configuration, with what that costs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

import numpy as np

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.data.switches import Condition, format_condition
from fusion_bench.experiment.dialect import (
    Configuration,
    Dialect,
    Fidelity,
    Translation,
    dialects,
)
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.export.records import ExportReport, ReplayRecord
from fusion_bench.export.replay import replay_system
from fusion_bench.export.translate import choose_class, read_back, translate_system
from fusion_bench.io.dataset import Dataset
from fusion_bench.util.files.output_folder import name_experiment


@dataclass(frozen=True)
class ExportOptions:
    """What to write.

    Attributes:
        engine: Name of the dialect.
        query_type: Write the numbers of this query type.
        intent: Write the numbers of this intent.
        replay: Whether to replay it; None = where it is approximate.
    """

    engine: str
    query_type: str | None = None
    intent: str | None = None
    replay: bool | None = None


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
        UnknownNameError: No such engine, query type or intent.
        FusionBenchError: The system does not fit the data.
    """
    dialect = dialects.find_plugin(options.engine)
    system = choose_class(system, options.query_type, options.intent)
    cut, depths = _cut_at_list_lengths(system, data)
    translation = translate_system(dialect, cut, data.roles)
    if depths is not None:
        translation = _add_reason(translation, depths, lost=cut is system)
    nearest = translation.system
    configuration = _write(dialect, nearest, data.roles)
    not_replayed = _why_not(translation, data, options)
    replays: tuple[ReplayRecord, ...] = ()
    if not_replayed is None and data.load is not None:
        exported = read_back(dialect, configuration, f"{system.name} in {dialect.title}")
        replays = tuple(
            replay_system(selected, source, dataset, system, exported, dialect)
            for dataset in data.load((system, exported))
            for selected in [_select_queries(experiment, dataset, options)]
        )
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
        notes=(*configuration.notes, *_note_conditions(system, data)),
        config=None if nearest is None else nearest.resolved_config,
        files=dict(configuration.files),
        replays=replays,
        not_replayed=not_replayed,
    )


def _note_conditions(system: System, data: ExportData) -> Iterator[str]:
    """Sources that the application has to leave out for some queries."""
    for name in system.base_runs:
        if name in data.conditions:
            condition = format_condition(data.conditions[name])
            yield f"{name} is on where ({condition}): leave it out of the request of other queries"


def _cut_at_list_lengths(system: System, data: ExportData) -> tuple[System, str | None]:
    """The system with the depth of its longest lists where it sets none, and what to say of that.

    A search engine has more documents than the lists that were evaluated, so a window is needed.
    """
    given = system.depth if isinstance(system.depth, Mapping) else {}
    missing = [name for name in system.runs if given.get(name) is None]
    if not missing or isinstance(system.depth, int) or system.stages:
        return system, None
    if data.load is None:
        return system, "depth: none is set, and no dataset says how long the lists are"
    runs = [run for dataset in data.load((system,)) for run in dataset.runs.values()]
    lengths = {
        name: max(int(np.diff(run.offsets).max(initial=1)) for run in runs if run.name == name)
        for name in missing
    }
    longest = max(lengths.values())
    depth = {**given, **dict.fromkeys(missing, longest)} if given else longest
    text = (
        f"depth: none is set; the longest list of the dataset has {longest} documents, so this "
        "many of a list are fetched"
    )
    return system.model_copy(update={"depth": depth}), text


def _write(
    dialect: type[Dialect], system: System | None, roles: Mapping[str, frozenset[str]]
) -> Configuration:
    return Configuration({}) if system is None else dialect.write_by_role(system, roles)


def _add_reason(translation: Translation, reason: str, *, lost: bool) -> Translation:
    """The translation with one more reason, which may lower its fidelity to ``approximate``."""
    order = get_args(Fidelity)
    fidelity = max(translation.fidelity, "approximate", key=order.index) if lost else None
    return replace(
        translation,
        fidelity=fidelity or translation.fidelity,
        reasons=(*translation.reasons, reason),
    )


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
