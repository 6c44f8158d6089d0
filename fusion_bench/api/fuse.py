"""Systems as Python names them; what they fuse of runs, of files, of an experiment."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fusion_bench.api import inputs
from fusion_bench.checks.dataset_facts import select_repeat
from fusion_bench.config.models import parse_model
from fusion_bench.config.own_methods import is_own, name_own
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.records import ScoreSpace, drop_final
from fusion_bench.data.run import Run, assign_roles
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.prepared_dataset import check_predictions
from fusion_bench.experiment.experiment import Experiment, apply_switch, find_one_dataset
from fusion_bench.experiment.system import System, merge_rules
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_config import NO_SETTINGS, FileSettings, read_spec
from fusion_bench.io.load_records import load_stated_run
from fusion_bench.io.outputs import refuse_inputs
from fusion_bench.io.write_run import RunRows
from fusion_bench.methods.fuse import Fusion, fusions
from fusion_bench.ranking.final_lists import FinalLists, align_all_queries, make_final_lists
from fusion_bench.ranking.plain_systems import fit_system, needs_fitting


@dataclass(frozen=True)
class MethodChoice:
    """A fusion method with parameters, not yet bound to runs.

    Attributes:
        method: Its name, or a function or class of one's own.
        parameters: Of the method, and keys of a system: ``blend``, ``depth``, ``top_k``, …
    """

    method: str | Callable[..., Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)


#: A method's name, a run's name, ``(method, parameters)``, keys as in YAML, a system, or a function
#: or class of one's own in a method's place.
SystemLike: TypeAlias = (
    str
    | Callable[..., Any]
    | tuple[str | Callable[..., Any], Mapping[str, Any]]
    | MethodChoice
    | Fusion
    | System
    | Mapping[str, Any]
)

#: Runs by name, or their names alone.
RunNames: TypeAlias = Mapping[str, Run] | Sequence[str]
#: Keys of a system beside its name and its fusion.
SYSTEM_KEYS = frozenset(System.model_fields) - {"name", "fusion"}


def rrf(
    k: float | Mapping[str, float] = 60,
    *,
    weights: Mapping[str, float] | None = None,
    **options: Any,  # noqa: ANN401 - the models check them
) -> MethodChoice:
    """Reciprocal rank fusion: Σ w / (k + rank).

    Args:
        k: Its constant, or one by run name or role; a run that it does not name has 60.
        weights: By run name or role; 1 by default.
        options: Keys of a system: ``runs``, ``blend``, ``depth``, ``top_k``, …

    >>> rrf(10)
    MethodChoice(method='rrf', parameters={'k': 10})
    """
    return MethodChoice("rrf", {"k": k, **options, **_name_weights(weights)})


def weighted(
    weights: Mapping[str, float] | None = None,
    *,
    normalize: str | Mapping[str, Any] | Callable[..., Any] = "min_max",
    missing: str = "zero",
    **options: Any,  # noqa: ANN401 - the models check them
) -> MethodChoice:
    """Weighted mean of normalized scores; by default the convex combination.

    Args:
        weights: By run name or role; 1 by default.
        normalize: How each list's scores are scaled first; a name, or a function of one's own.
        missing: What counts for a run that did not return the document: ``zero``, ``min`` or
            ``skip``.
        options: Keys of a system: ``runs``, ``blend``, ``depth``, ``top_k``, …

    >>> weighted({"bm25": 0.3, "dense": 0.7}).method
    'weighted_score'
    """
    given = {"normalize": normalize, "missing": missing, **options}
    return MethodChoice("weighted_score", {**given, **_name_weights(weights)})


def _name_weights(weights: Mapping[str, float] | None) -> dict[str, dict[str, float]]:
    return {} if weights is None else {"weights": dict(weights)}


def name_systems(given: Any, runs: RunNames) -> dict[str, Any]:  # noqa: ANN401 - many kinds
    """Systems by name, each as an experiment takes it.

    Args:
        given: ``{name: system}``, a list of systems, or one; None = each run alone.
        runs: All runs, or their names: those of a system that does not name its own, but for
            final lists.

    Raises:
        ConfigError: Something is no system, or two have one name.
    """
    if given is None:
        return {name: {"runs": [name]} for name in runs}
    if isinstance(given, Mapping) and not (given and set(given) <= SYSTEM_KEYS | {"fusion"}):
        return {str(name): system_keys(str(name), item, runs) for name, item in given.items()}
    items = given if isinstance(given, list) else [given]
    systems: dict[str, Any] = {}
    for item in items:
        name, choice = default_name(item), _read_pair(item)
        if len(items) > 1 and isinstance(choice, MethodChoice):  # numbers tell one from the next
            given_numbers = choice.parameters if isinstance(choice.parameters, Mapping) else {}
            for key, value in given_numbers.items():
                name += f" {key}={value}" if isinstance(value, int | float) else ""
        if name in systems:
            raise ConfigError(f"two systems are named {name!r}: give them as {{name: system}}")
        systems[name] = system_keys(name, item, runs)
    return systems


def build_system(name: str, given: SystemLike, runs: RunNames) -> System:
    """One system, as ``RAG_FUSION_V2_ENABLED`` has it.

    Args:
        name: Its name.
        given: What it is.
        runs: All runs, or their names.

    Raises:
        ConfigError: A key or value breaks a rule.
    """
    keys = system_keys(name, given, runs)
    if isinstance(keys, System):
        return apply_switch(keys)
    return apply_switch(parse_model(System, {**keys, "name": name}, name))


def system_keys(name: str, given: Any, runs: RunNames) -> System | dict[str, Any]:  # noqa: ANN401
    """A system, or its keys as in YAML; arguments as for :func:`build_system`."""
    if isinstance(given, System):
        return given.model_copy(update={"name": name})
    if isinstance(given, Fusion) or is_own(given):
        return {"runs": _list_sources(runs), "fusion": given}
    if isinstance(given, str):
        is_run = given in runs
        return {"runs": [given]} if is_run else {"runs": _list_sources(runs), "fusion": given}
    given = _read_pair(given)
    if isinstance(given, MethodChoice) and isinstance(given.parameters, Mapping):
        keys = {key: value for key, value in given.parameters.items() if key in SYSTEM_KEYS}
        fusion = {key: value for key, value in given.parameters.items() if key not in SYSTEM_KEYS}
        return {"runs": _list_sources(runs), **keys, "fusion": {**fusion, "method": given.method}}
    if isinstance(given, Mapping):
        return {"runs": _list_sources(runs), **given}
    raise ConfigError(
        f"system {name!r}: give a method's name, (method, parameters), a function, a class "
        f"of Fusion, or a System, not {given!r}"
    )


def _read_pair(given: Any) -> Any:  # noqa: ANN401 - many kinds
    """``(method, parameters)`` as a choice; anything else as it is."""
    return MethodChoice(*given) if isinstance(given, tuple) and len(given) == 2 else given


def _list_sources(runs: RunNames) -> list[str]:
    """The runs of a system that names none: all that are no final list."""
    if not isinstance(runs, Mapping):
        return list(runs)
    return drop_final([*runs], [run.roles for run in runs.values()])


def default_name(given: object) -> str:
    """The name of a system that is given without one: that of its method."""
    if isinstance(given, System):
        return given.name
    if isinstance(given, Fusion):
        return given.method
    given = _read_pair(given)
    method = given.method if isinstance(given, MethodChoice) else given
    if isinstance(given, MethodChoice) or is_own(given):
        return name_own(method) if is_own(method) else str(method)
    return given if isinstance(given, str) else "system"


def fuse(
    runs: object,
    system: SystemLike = "rrf",
    *,
    rerankers: object = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    queries: object = None,
    roles: inputs.Roles | None = None,
    name: str | None = None,
    **parameters: Any,  # noqa: ANN401 - the models check them
) -> Run:
    """Fuse runs into one list a query, as a system does.

    Args:
        runs: ``{name: run}``, a list of runs, or a dataset: its name, its path, or a ``Dataset``.
            A run is a path, a dictionary, a data frame, a ``Run`` of this package or of ranx, or
            rows of ir_measures or ir_datasets.
        system: A method's name, ``(method, parameters)``, what ``rrf(…)`` or ``weighted(…)``
            return, a function or class of one's own, or a ``System``.
        rerankers: Rerank lists by name, for a ``blend``.
        score_spaces: What the numbers of each rerank list mean; guessed from them by default.
        queries: Types by query id, for weights by query type.
        roles: Role or roles of a run by its name, such as ``{"dense": "question"}``. A run named
            ``question``, ``query`` or ``original`` is ``question``, if nothing says which run is.
        name: Name of the new run; the method's by default.
        parameters: Of the method, such as ``k=60``, and keys of a system: ``blend``, ``depth``,
            ``top_k``, …; how lists are read, by name: ``order={"l2": "lower"}``, ``ids``,
            ``drop_own_id``, ``encoding``.

    Returns:
        The final lists of every query that some run answers. The scores fall along each list.

    Raises:
        FusionBenchError: Something breaks a rule; says what.

    >>> bm25 = {"q1": {"d2": 9.1, "d1": 7.4}}
    >>> dense = {"q1": {"d1": 0.8, "d3": 0.7}}
    >>> fused = fuse({"bm25": bm25, "dense": dense}, "rrf", k=60)
    >>> fused
    Run('rrf', 1 query, 3 documents)
    >>> list(fused.to_dict()["q1"])
    ['d1', 'd2', 'd3']
    """
    settings = inputs.pop_settings(parameters)
    if parameters:
        system = _add_parameters(system, parameters)
    opened = inputs.open_dataset(runs)
    if opened is not None:
        dataset = inputs.read_dataset(
            opened,
            rerankers=rerankers,
            score_spaces=score_spaces,
            needs_judgments=False,
            settings=settings,
        ).with_roles(roles)
        tables, lists, spaces = dict(dataset.runs), dict(dataset.rerankers), dict(dataset.spaces)
        known = dataset.queries
    else:
        tables, (lists, spaces) = (
            assign_roles(inputs.read_runs(runs, settings), roles),
            inputs.read_rerankers(rerankers, score_spaces, settings=settings),
        )
        settings.check_names([*tables, *lists])
        known = {}
    label = name or default_name(system)
    built = build_system(label, system, tables)
    known_roles = {key: table.roles for key, table in tables.items()}
    with inputs.explain_roles():
        for _, problem in built.find_misfits(known_roles, [*lists]):
            raise ConfigError(f"{label}: {problem}")
    warn_of_skipped_lists(built, known_roles)
    aligned = align_all_queries(
        list(tables.values()),
        rerankers=list(lists.values()),
        queries=inputs.read_queries(queries) or known,
        spaces=spaces,
    )
    if opened is not None and needs_fitting(built):
        inputs.require_judgments(dataset)
        built = fit_system(built, dataset.aligned(built.base_runs))
    return make_final_lists(built, aligned).to_run()


def skips_lists_unasked(system: System) -> bool:
    """Whether a document of one list wins by a default that nobody wrote, which lint can show."""
    return bool(getattr(system.fusion, "skips_unasked", False))  # of weighted_score alone


def warn_of_skipped_lists(system: System, roles: Mapping[str, Collection[str]]) -> None:
    """Warn the caller's caller of :func:`skips_lists_unasked`, with the witness of lint.

    Args:
        system: The system.
        roles: Of its runs, by name.
    """
    if not skips_lists_unasked(system):
        return
    from fusion_bench.checks.lint import lint_systems
    from fusion_bench.checks.lint_rule import DatasetFacts

    facts = DatasetFacts("", {name: frozenset(given) for name, given in roles.items()})
    for item in lint_systems([system], [facts]):
        if item.id == "missing-skip-unasked":
            text = f"{system.name}: {item.problem.message}"
            warnings.warn(text, stacklevel=3)


def _add_parameters(system: SystemLike, parameters: Mapping[str, Any]) -> MethodChoice:
    """The method with these parameters on top of its own.

    Raises:
        ConfigError: It is no method.
    """
    if isinstance(system, str) or is_own(system):
        return MethodChoice(system, parameters)
    if isinstance(system, MethodChoice):
        return MethodChoice(system.method, {**system.parameters, **parameters})
    raise ConfigError(
        f"{', '.join(parameters)}: parameters go with a method's name: put them into the system"
    )


def fuse_experiment(
    experiment: Experiment,
    source: Source,
    system: str,
    *,
    folders: Collection[Path],
    dataset: str | None = None,
    split: str | None = None,
    trial: int = 1,
) -> FinalLists:
    """The final lists of one system of an experiment.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        system: Name of the system.
        folders: Where named datasets live.
        dataset: As the experiment names it; needed if it names several.
        split: Only queries of this split; None = every query that a run answers, judged or not.
        trial: Which file of each list that has several.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, or a name is unknown.
    """
    chosen = experiment.find_system(system)
    file = find_one_dataset(experiment, source, dataset, folders)
    spec, _ = read_spec(file)
    refuse_inputs(spec.file_paths(file.parent))
    alone = experiment.model_copy(update={"systems": {system: chosen}})
    alone.check_datasets(spec.run_roles, spec.rerank, source)
    loaded = select_repeat(
        load_dataset(
            file,
            runs=chosen.base_runs,
            rerankers=chosen.reranker_names,
            merged=merge_rules([chosen]),
            every_query=False if needs_fitting(chosen) else None,  # what is trained needs judgments
        ),
        trial,
    )
    check_predictions([chosen], source, loaded)
    runs = align_all_queries(
        [loaded.runs[name] for name in chosen.base_runs],
        rerankers=list(loaded.rerankers.values()),
        queries=loaded.queries,
        ties=experiment.ties,
        spaces=loaded.spaces,
    )
    runs = replace(runs, find_parents=loaded.find_parents)
    if split is not None:
        queries = loaded.queries.values()
        known = {query.id for query in queries if query.split == split}
        is_kept = np.array([query in known for query in runs.queries], dtype=bool)
        if not is_kept.any():
            splits = {query.split for query in queries if query.split is not None}
            raise UnknownNameError("split", split, splits, where=f"--split: {loaded.name}")
        runs = runs.subset(is_kept)
    if needs_fitting(chosen):
        chosen = fit_system(chosen, loaded.aligned(chosen.base_runs, ties=experiment.ties))
    return make_final_lists(chosen, runs)


def fuse_files(
    files: Mapping[str, Path],
    fusion: Mapping[str, Any],
    settings: FileSettings = NO_SETTINGS,
    *,
    roles: inputs.Roles | None = None,
) -> FinalLists:
    """Fuse run files that no dataset describes; the lists are named as the method is.

    Args:
        files: Run files by name.
        fusion: The fusion's keys, as in YAML.
        settings: What is stated of the files beside their paths.
        roles: Role or roles of a list by its name.

    Raises:
        FusionBenchError: A file or the fusion breaks a rule.
    """
    made = fusions.build(fusion)
    runs = {name: load_stated_run(path, name, settings) for name, path in files.items()}
    aligned = align_all_queries([*assign_roles(runs, roles).values()])
    system = apply_switch(System(name=str(fusion["method"]), runs=tuple(files), fusion=made))
    with inputs.explain_roles("write --role LIST=question"):
        return make_final_lists(system, aligned)


def make_run_rows(lists: FinalLists, *, has_sources: bool) -> RunRows:
    """Final lists by columns, as a file holds them.

    Args:
        lists: The lists.
        has_sources: With the rank and the score of each document in every source.
    """
    sources: dict[str, tuple[list[int | None], list[float | None]]] = {}
    if has_sources:
        tables = zip(
            lists.sources, lists.source_ranks.tolist(), lists.source_scores.tolist(), strict=True
        )
        for name, ranks, scores in tables:
            pairs = list(zip(ranks, scores, strict=True))
            sources[name] = (
                [rank or None for rank, _ in pairs],
                [score if rank else None for rank, score in pairs],
            )
    return RunRows(
        name=lists.system,
        queries=lists.query_ids,
        documents=lists.document_ids,
        ranks=lists.ranks.tolist(),
        scores=lists.scores.tolist(),
        sources=sources,
    )
