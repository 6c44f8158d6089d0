"""Plain systems: what of a system is fitted, split by query type or switched off, resolved."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusion_bench.config.query_types import (
    BY_TYPE,
    PREDICTED_CONFIDENCE,
    PREDICTED_TYPE,
    UNSURE,
    ClassKey,
    TypeSource,
)
from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.records import Query, Switch
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System, source_roles
from fusion_bench.methods.fuse import CrossFitted, Trainable
from fusion_bench.methods.normalize import Normalizer
from fusion_bench.ranking.collapse import (
    add_system_parents,
    collapse_sources,
    unfold_collapse,
)
from fusion_bench.ranking.system_ranking import (
    list_scores,
    name_system_in_errors,
    rank_candidates,
)


def choose_class(system: System, query: Query) -> str | None:
    """The query type or intent whose numbers a query gets; None = one set for all.

    With ``types: predicted`` a predicted type among its fields counts before its type, which in a
    live query is a prediction anyway.
    """
    key, known = system.class_key, system.query_classes
    if key is None or known is None:
        return None
    value, confidence = query.value_of(key.field), query.confidence
    if key is BY_TYPE and system.types == "hybrid":
        value, confidence = UNSURE, None
    elif key is BY_TYPE and system.types == "predicted" and PREDICTED_TYPE in query.fields:
        value = query.fields[PREDICTED_TYPE]
        confidence = _parse_confidence(query.fields.get(PREDICTED_CONFIDENCE))
    return key.class_of(value, confidence, known)


def _parse_confidence(text: str | None) -> float | None:
    return None if text is None else float(text)


def resolve_classes(
    runs: AlignedRuns, key: ClassKey, known: Collection[str], types: TypeSource | None = None
) -> NDArray[np.str_]:
    """(Q,): the query type or intent whose numbers each query gets.

    Args:
        runs: Aligned runs.
        key: What decides.
        known: The classes that have numbers.
        types: Which types count, where types decide; None = those that are given.
    """
    values, confidences = runs.values_of(key.field), runs.confidences
    if key is BY_TYPE:
        values, confidences = runs.types, runs.confidences
    if key is BY_TYPE and types == "hybrid":
        values, confidences = (UNSURE,) * len(runs.queries), (None,) * len(runs.queries)
    elif key is BY_TYPE and types == "predicted":
        values = runs.values_of(PREDICTED_TYPE)
        confidences = tuple(map(_parse_confidence, runs.values_of(PREDICTED_CONFIDENCE)))
    pairs = zip(values, confidences, strict=True)
    return np.array([key.class_of(value, confidence, known) for value, confidence in pairs])


@cached_by_view()
def runs_of_resolved_class(
    runs: AlignedRuns, name: str, key: ClassKey, known: tuple[str, ...], types: TypeSource | None
) -> AlignedRuns:
    """The queries that get the numbers of a class, of which there is one at least."""
    return runs.subset(resolve_classes(runs, key, known, types) == name)


Roles = Sequence[frozenset[str]]


def remove_sources(system: System, removed: Collection[str], roles: Roles) -> System:
    """The system of the other sources, with the weights and numbers that they have in it.

    A system of which no source with a weight above 0 would be left keeps those: where all of
    them are off, none returns a document.

    Args:
        system: A plain system.
        removed: Names of sources.
        roles: Of each of the system's sources, (S,).

    Raises:
        ConfigError: The sources do not fit the fusion, with or without these.
    """
    system.fusion.check_sources(system.runs, roles)
    weights = system.fusion.source_weights(system.runs, roles).tolist()
    weighed = [name for name, weight in zip(system.runs, weights, strict=True) if weight > 0]
    kept = [name for name in system.runs if name not in removed]
    if not set(kept) & set(weighed):
        kept = weighed
    stages = {name: stage for name, stage in (system.stages or {}).items() if name in kept}
    kept_roles = [role for name, role in zip(system.runs, roles, strict=True) if name in kept]
    by_name = dict(zip(system.runs, weights, strict=True))
    fusion = system.fusion
    present = {*kept, *(role for names in kept_roles for role in names)}
    kept_numbers: dict[str, Any] = {}
    for name in ("weights", *fusion.per_source):
        numbers = getattr(fusion, name, None)
        if isinstance(numbers, Mapping):
            kept_numbers[name] = {key: value for key, value in numbers.items() if key in present}
    scale = getattr(fusion, "normalize", None)
    if isinstance(scale, Normalizer) and (rest := scale.keep_sources(present)) is not scale:
        kept_numbers["normalize"] = rest
    if "weights" in type(fusion).model_fields and getattr(fusion, "alpha", None) is not None:
        kept_numbers |= {"alpha": None, "weights": {name: by_name[name] for name in kept}}
    fusion = fusion.model_copy(update=kept_numbers) if kept_numbers else fusion
    fusion.check_sources(kept, kept_roles)
    changed = {"runs": tuple(kept), "fusion": fusion, "stages": stages or None}
    return system.model_copy(update=changed)


def split_by_switches(
    system: System, runs: AlignedRuns
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    """The system without the sources that are off: query indices, system, runs.

    A source that is off for a query weighs 0 for it, so that neither a sum of weights nor a
    greatest possible score counts it. A trained fusion knows its sources by their number: it sees
    a source that is off as one that returned nothing.

    Args:
        system: A plain system.
        runs: All sources of the dataset and its stages.

    Raises:
        ConfigError: The sources that are on do not fit the fusion.
    """
    is_trained = isinstance(system.fusion, CrossFitted | Trainable)
    if is_trained or not any(runs.switches[row] for row in runs.rows(system.runs) if runs.switches):
        yield np.arange(len(runs.queries)), system, runs
        return
    for removed, keep in _list_patterns(runs, system.runs):
        part = runs if keep.all() else _queries_of(runs, system.runs, removed)
        if not removed:
            yield np.flatnonzero(keep), system, part
            continue
        roles = [runs.roles[i] for i in runs.rows(system.runs)]
        try:
            plain = remove_sources(system, removed, roles)
        except ConfigError as error:
            first = runs.queries[int(np.argmax(keep))]
            raise ConfigError(
                f"system {system.name!r}: {', '.join(removed)} off for {keep.sum():,} queries "
                f"(for example {first!r}): {error}"
            ) from None
        yield np.flatnonzero(keep), plain, part


@cached_by_view()
def _list_patterns(
    runs: AlignedRuns, sources: tuple[str, ...]
) -> tuple[tuple[tuple[str, ...], BoolArray], ...]:
    """Each set of sources that is off for some queries, and which queries, (Q,)."""
    patterns, codes = np.unique(runs.off[runs.rows(sources)], axis=1, return_inverse=True)
    names = np.array(sources, dtype=object)
    return tuple(
        (tuple(names[is_off]), codes.reshape(-1) == code) for code, is_off in enumerate(patterns.T)
    )


@cached_by_view()
def _queries_of(
    runs: AlignedRuns, sources: tuple[str, ...], removed: tuple[str, ...]
) -> AlignedRuns:
    """The queries for which just these of the sources are off."""
    [keep] = [keep for names, keep in _list_patterns(runs, sources) if names == removed]
    return runs.subset(keep)


#: Sets of stages whose lists a view remembers.
STAGES_KEPT = 8


def plain_systems(
    system: System, runs: AlignedRuns
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    """Plain systems that together cover every query: query indices, system, runs.

    Args:
        system: Any system.
        runs: All sources of the dataset.
    """
    runs = add_system_parents(runs, [system])
    for index, of_class, part in _split_by_class(unfold_collapse(system), runs):
        staged = runs_with_stages(of_class, part)
        for inner, plain, view in split_by_switches(of_class, staged):
            with name_system_in_errors(plain):
                collapsed = collapse_sources(plain, view)
            yield index[inner], *collapsed


def _split_by_class(
    system: System, runs: AlignedRuns
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    key, known = system.class_key, system.query_classes
    if key is None or known is None:
        yield np.arange(len(runs.queries)), system, runs
        return
    classes = resolve_classes(runs, key, known, system.types)
    for name in sorted(set(classes.tolist())):
        part = runs_of_resolved_class(runs, name, key, known, system.types)
        yield np.flatnonzero(classes == name), system.of_class(name), part


def plain_system_of(system: System, runs: AlignedRuns, query: str) -> tuple[System, AlignedRuns]:
    """The plain system that ranks a query, and the runs of that query alone.

    Args:
        system: Any system.
        runs: All sources of the dataset.
        query: Id of one of the queries.
    """
    row = runs.queries.index(query)
    for index, plain, part in plain_systems(system, runs):
        if row in index:
            return plain, part.subset(index == row)
    raise AssertionError("plain systems cover every query")


def runs_with_stages(system: System, runs: AlignedRuns) -> AlignedRuns:
    """The runs with one more source for each stage of the system; themselves where it has none.

    Raises:
        ConfigError: A stage cannot be ranked; names system and stage.
    """
    if not system.stages:
        return runs
    with name_system_in_errors(system, is_owner=True):
        return add_stages(runs, system.stages)


def _stages_key(stages: Mapping[str, System]) -> tuple[tuple[str, str], ...]:
    return tuple((name, stage.model_dump_json()) for name, stage in stages.items())


@cached_by_view(keep=STAGES_KEPT, key=_stages_key)
def add_stages(runs: AlignedRuns, stages: Mapping[str, System]) -> AlignedRuns:
    """The runs with one more source for each stage: its final list."""
    for name, stage in stages.items():
        shared = source_roles(stage, dict(zip(runs.sources, runs.roles, strict=True))).values()
        ranks: IntArray = np.zeros(len(runs.documents), dtype=np.int64)
        scores: FloatArray = np.full(len(runs.documents), np.nan)
        for index, plain, part in plain_systems(stage, runs):
            ranking = rank_candidates(plain, part)
            view, rows = ranking.runs, ranking.list_rows()
            places = runs.find_rows(index[view.query_index[rows]], view.documents[rows])
            ranks[places] = ranking.positions[rows]
            scores[places] = list_scores(ranking, rows)
        switch = None
        if runs.switches:  # a stage is on where one of the runs that it reads is on
            on = [runs.switches[row] for row in runs.rows(stage.base_runs)]
            known = [each.queries for each in on if each is not None]
            if len(known) == len(on):
                switch = Switch(frozenset().union(*known))
        runs = runs.add_source(name, frozenset.intersection(*shared), ranks, scores, switch)
    return runs


#: Fitted fusions that a view remembers.
FITTED_KEPT = 64


def needs_fitting(system: System) -> bool:
    """Whether a fusion of the system, of a query type or of a stage, is not fitted."""
    return any(_trained_parts(part) for _, part in system.list_parts())


def _trained_parts(system: System) -> list[str]:
    """The parts of the system itself that learn, and are not fitted."""
    by_class = (system.class_configs or {}).values()
    fusions = [part.fusion for part in by_class] or [system.fusion]
    return ["the fusion"] if any(isinstance(fusion, Trainable) for fusion in fusions) else []


def fit_system(system: System, runs: AlignedRuns) -> System:
    """The system with its trained fusions fitted, its stages' first; itself if it has none.

    Every query of the runs is scored by a model that did not learn from it, other queries by a
    model that learned from all of these. A fusion for one query type or intent learns from queries
    of that class. Fitted systems stay as they are.

    Args:
        system: Any system.
        runs: All sources of the dataset, every query that may be learned from.

    Raises:
        AlignmentError: Too few queries, or none with a relevant document.
        ConfigError: The system does not fit the sources, or two parts would be trained one on
            the other.
    """
    if not needs_fitting(system):
        return system
    system, runs = unfold_collapse(system), add_system_parents(runs, [system])
    trained = _trained_parts(system)
    inner = [name for name, stage in (system.stages or {}).items() if needs_fitting(stage)]
    trained += [f"stage {name!r}" for name in inner] if trained else []
    if len(trained) > 1:
        raise ConfigError(
            f"system {system.name!r}: {' and '.join(trained)} are trained, and one would learn "
            "from the other: train one of them"
        )
    if system.stages is not None:
        stages = {}
        for name, stage in system.stages.items():
            with name_system_in_errors(system, is_owner=True):
                stages[name] = fit_system(stage, runs)
        system = system.model_copy(update={"stages": stages})
        runs = runs_with_stages(system, runs)
    key, configs = system.class_key, system.class_configs
    if key is None or configs is None:
        if isinstance(system.fusion, Trainable):
            system = system.model_copy(update={"fusion": _fit_fusion(system, runs)})
        return system
    parts, known = dict(configs), tuple(configs)
    classes = resolve_classes(runs, key, known, system.types)
    for name, part in parts.items():
        if isinstance(part.fusion, Trainable) and (classes == name).any():
            members = runs_of_resolved_class(runs, name, key, known, system.types)
            fitted = _fit_fusion(system.of_class(name), members, f"{key.field} {name!r}: ")
            parts[name] = part.model_copy(update={"fusion": fitted})
    return system.model_copy(update={key.key: parts})


def fit_repeats(
    system: System, runs: AlignedRuns, training: AlignedRuns | None = None
) -> Iterator[tuple[System, AlignedRuns]]:
    """The system on each of its repeats, fitted on that repeat alone, and the lists of it.

    Args:
        system: Any system; one that reads no list of several files has one repeat.
        runs: The queries that are evaluated.
        training: Those that trained parts learn from; None = the evaluated ones.
    """
    learned = (runs if training is None else training).repeats
    count = runs.count_repeats(system.list_keys) if runs.later else 1
    for repeat, lists in zip(runs.repeats[:count], learned, strict=False):
        yield fit_system(system, lists), repeat


def _fit_fusion(system: System, runs: AlignedRuns, where: str = "") -> CrossFitted:
    """The trained fusion of a plain system, fitted to the lists as the system cuts them."""
    with name_system_in_errors(system, where):
        fusion = system.fusion
        if not isinstance(fusion, Trainable):
            raise TypeError(f"{fusion.method} is not trained")
        plain, lists = collapse_sources(system, runs)
        return _cross_fit_fusion(plain.active_runs(lists), fusion)


@cached_by_view(keep=FITTED_KEPT, key=lambda fusion: (type(fusion), fusion.model_dump_json()))
def _cross_fit_fusion(view: AlignedRuns, fusion: Trainable) -> CrossFitted:
    return fusion.cross_fit(view)
