"""Lint of an experiment: what a configuration can or cannot do, from its numbers alone.

Format history:
    1   first version
    2   ``engine``, ``untranslated``

``docs/reference/lint.md`` has a section for each rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from fusion_bench.checks.lint_rule import (
    DatasetFacts,
    Problem,
    Rule,
    Subject,
    SwitchFacts,
    load_rules,
    reproduce,
)
from fusion_bench.checks.records import LintFinding, Severity
from fusion_bench.checks.rules.engines import explain_untranslated
from fusion_bench.config.json_records import StoredRecord
from fusion_bench.config.models import Location
from fusion_bench.config.query_types import BY_INTENT
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.records import Query, format_condition, meets_condition
from fusion_bench.errors import UnknownNameError
from fusion_bench.experiment.experiment import Experiment, find_datasets
from fusion_bench.experiment.system import System, source_roles
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_config import DatasetPaths, DatasetSpec, find_dataset, read_spec
from fusion_bench.io.json_objects import load_queries
from fusion_bench.util.files import name_experiment

SEVERITIES: tuple[Severity, ...] = ("warning", "note")


@dataclass
class MergedProblem:
    """A problem, and everything that has it.

    Attributes:
        id: The rule.
        severity: The problem's or the rule's.
        problem: As it was first met.
        location: Path of the value in the experiment.
        query_classes: Query types or intents for which the systems have it; empty = all.
        systems: Names of systems.
        datasets: Names of datasets.
    """

    id: str
    severity: Severity
    problem: Problem
    location: Location
    query_classes: tuple[str, ...]
    systems: list[str] = field(default_factory=list)
    datasets: list[str] = field(default_factory=list)
    is_by_intent: bool = False

    def add_subject(self, subject: Subject) -> None:
        """Add a system that has the same problem, once."""
        dataset = None if subject.dataset is None else subject.dataset.name
        for known, name in ((self.systems, subject.name), (self.datasets, dataset)):
            if name is not None and name not in known:
                known.append(name)

    def to_finding(self, source: Source | None) -> LintFinding:
        """The record; ``source`` says where the value stands."""
        return LintFinding(
            id=self.id,
            severity=self.severity,
            message=self.problem.message,
            systems=tuple(self.systems),
            query_types=() if self.is_by_intent else self.query_classes,
            intents=self.query_classes if self.is_by_intent else (),
            datasets=tuple(self.datasets),
            where="" if source is None else source.where(self.location),
        )


def lint_experiment(
    experiment: Experiment,
    source: Source | None,
    datasets: Sequence[DatasetFacts],
    *,
    systems: Collection[str] | None = None,
) -> tuple[LintFinding, ...]:
    """What the rules find in an experiment, warnings first.

    Args:
        experiment: The experiment; its ``lint.ignore`` and ``expected_lint`` list rules.
        source: Where it was read from; None = nowhere.
        datasets: What is known of its datasets; empty = nothing.
        systems: Only these of its systems.

    Raises:
        UnknownNameError: ``lint.ignore`` or ``expected_lint`` lists no rule.
    """
    check_rules(experiment, source)
    chosen = [s for name, s in experiment.systems.items() if systems is None or name in systems]
    ignored, expected = experiment.lint.ignore, experiment.expected_lint
    merged = lint_systems(chosen, datasets, ignored=ignored, expected=expected)
    return tuple(item.to_finding(source) for item in merged)


def lint_systems(
    systems: Iterable[System],
    datasets: Sequence[DatasetFacts] = (),
    *,
    ignored: Collection[str] = (),
    expected: Collection[str] = (),
    engine: str | None = None,
) -> list[MergedProblem]:
    """The problems of systems, warnings first, then by rule; equal ones are one.

    Args:
        systems: The systems.
        datasets: What is known of their datasets; empty = nothing.
        ignored: Ids of rules to leave out.
        expected: Ids of rules that systems break on purpose: their problems are notes.
        engine: Name of the dialect of the search engine that shall run them.
    """
    merged: dict[tuple[str, str, tuple[str, ...]], MergedProblem] = {}
    groups = [
        group for group in _list_subjects(systems, datasets, engine) if group[0].weights is not None
    ]
    for rule_id, rule in load_rules().items():
        for group in groups if rule_id not in ignored else ():
            for problem, subjects in _find_in_group(rule, group):
                is_part = len(subjects) < len(group) and not problem.of_whole
                named = (each.query_class for each in subjects if is_part)
                classes = tuple(name for name in named if name is not None)
                severity = problem.severity or rule.severity
                severity = "note" if rule_id in expected else severity
                path = group[0].path or (group[0].name,)
                location = ("systems", *path, *problem.location)
                new = MergedProblem(rule_id, severity, problem, location, classes)
                new.is_by_intent = group[0].whole.class_key is BY_INTENT
                merged.setdefault((rule_id, problem.message, classes), new).add_subject(subjects[0])
    return sorted(merged.values(), key=lambda item: SEVERITIES.index(item.severity))


def _find_in_group(rule: Rule, group: Sequence[Subject]) -> Iterator[tuple[Problem, list[Subject]]]:
    """The problems of one system, each with the classes of queries that have it."""
    by_message: dict[str, tuple[Problem, list[Subject]]] = {}
    for subject in group:
        for problem in rule.find_problems(subject):
            by_message.setdefault(problem.message, (problem, []))[1].append(subject)
    yield from by_message.values()


def _list_subjects(
    systems: Iterable[System], datasets: Sequence[DatasetFacts], engine: str | None = None
) -> Iterator[list[Subject]]:
    """Each system and each of its stages on each dataset: a plain system a class of queries.

    The list of a stage counts as a list of the dataset: the stage is a subject of its own.
    """
    for path, part in (pair for system in systems for pair in system.list_parts()):
        system = part.model_copy(update={"stages": None})
        target = None if part.stages or len(path) > 1 else engine  # it runs the whole in one step
        for dataset in datasets or (None,):
            facts = dataset
            if dataset is not None and part.stages:
                roles = source_roles(part, defaultdict(frozenset, dataset.roles))
                facts = replace(dataset, roles={**dataset.roles, **roles})
            key = system.class_key
            present = None if dataset is None or key is None else dataset.classes(key)
            names = [
                name
                for name in system.query_classes or ()
                if present is None or name in present or (key and name == key.fallback)
            ]
            yield [
                Subject(system.of_class(name), system, name, facts, target, path) for name in names
            ] or [Subject(system, system, None, facts, target, path)]


def check_rules(experiment: Experiment, source: Source | None) -> None:
    """Refuse ids in ``lint.ignore`` and ``expected_lint`` that name no rule.

    Raises:
        UnknownNameError: Names the known ones.
    """
    rules = load_rules()
    places: dict[Location, tuple[str, ...]] = {
        ("lint", "ignore"): experiment.lint.ignore,
        ("expected_lint",): experiment.expected_lint,
    }
    for place, names in places.items():
        for i, name in enumerate(names):
            if name in rules:
                continue
            where = ".".join(map(str, place)) if source is None else source.where((*place, i))
            raise UnknownNameError("lint rule", name, rules, where=where)


def lint_datasets(
    experiment: Experiment, source: Source, folders: Collection[Path]
) -> tuple[LintFinding, ...]:
    """What the rules find in an experiment on its datasets, which must be there."""
    return lint_experiment(experiment, source, read_dataset_facts(experiment, source, folders))


def read_dataset_facts(
    experiment: Experiment, source: Source, folders: Collection[Path], dataset: str | None = None
) -> tuple[DatasetFacts, ...]:
    """What the ``dataset.yaml`` of each of an experiment's datasets says.

    Queries are read only where some system has parameters by their type or intent, or some run is
    on for only some of them.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        folders: Where named datasets live.
        dataset: A dataset in place of the experiment's, by name or path.

    Raises:
        UnknownNameError: A dataset is not there.
        FusionBenchError: Its file breaks a rule.
    """
    by_class = any(system.class_key is not None for system in experiment.systems.values())
    if dataset is None:
        paths = [path for _, path in find_datasets(experiment, source, folders)]
    else:
        paths = [find_dataset(dataset, folders, where="--dataset")]
    facts = []
    for path in paths:
        spec, file = read_spec(path)
        queries: Collection[Query] | None = None
        if by_class or any(run.when is not None for run in spec.runs.values()):
            queries = ()
            if spec.queries is not None:
                known = load_queries(DatasetPaths(file).existing(spec.queries, "queries"))
                queries = known.values()
        facts.append(_make_facts(spec, queries))
    return tuple(facts)


def read_fitting_facts(
    experiment: Experiment, source: Source, folders: Collection[Path], dataset: str | None = None
) -> tuple[DatasetFacts, ...]:
    """Read the facts of datasets that the systems fit; none if the experiment's own is missing.

    Raises:
        ConfigError: A dataset that was asked for is not there, or a system does not fit it.
    """
    try:
        facts = read_dataset_facts(experiment, source, folders, dataset)
    except UnknownNameError:
        if dataset is not None:
            raise
        return ()
    for item in facts:
        experiment.check_datasets(item.roles, item.spaces, source)
    return facts


def _make_facts(spec: DatasetSpec, queries: Collection[Query] | None = None) -> DatasetFacts:
    """What a ``dataset.yaml`` says, and what decides by its queries if they are known."""
    conditions = {name: run.when for name, run in spec.runs.items() if run.when}
    types = None if queries is None else {q.type for q in queries if q.type is not None}
    return DatasetFacts(
        spec.name,
        spec.run_roles,
        {name: rerank.score_space for name, rerank in spec.rerank.items()},
        None if types is None else frozenset(types),
        {
            name: SwitchFacts(
                format_condition(condition),
                sum(meets_condition(query, condition) for query in queries),
                len(queries),
            )
            for name, condition in conditions.items()
            if queries
        },
        None if queries is None else frozenset(q.intent for q in queries if q.intent is not None),
    )


def describe_dataset(dataset: Dataset) -> DatasetFacts:
    """What is known of a dataset that is at hand."""
    return _make_facts(dataset.spec, dataset.queries.values())


class WitnessDocument(StoredRecord):
    """One document of a witness.

    Attributes:
        document: Its id.
        ranks: Source → rank; a source that does not return it is left out.
        scores: Source → score in its list.
        rerank: Raw rerank score; None = there is none.
        final_rank: Its rank in the real system's list; None = not returned.
        final_score: Its final score.
    """

    document: str
    ranks: dict[str, int]
    scores: dict[str, float]
    rerank: float | None = None
    final_rank: int | None = None
    final_score: float | None = None


class WitnessRecord(StoredRecord):
    """Ranks and scores, and what the real system made of them.

    Attributes:
        claim: What they show.
        system: The system that was run, with every default.
        documents: In the order of the system's list; those that are dropped come last.
    """

    claim: str
    system: dict[str, Any]
    documents: tuple[WitnessDocument, ...]


class WitnessedFinding(LintFinding):
    """A finding with the witness that the real system reproduced."""

    witness: WitnessRecord


class LintReport(StoredRecord):
    """What ``fusion-bench lint --json`` prints.

    Attributes:
        format: Always ``fusion-bench-lint``.
        format_version: See the history in this module.
        experiment: Its name.
        datasets: The datasets that were looked at; empty = the configuration alone.
        systems: The systems that were looked at.
        findings: Warnings first.
        unchecked: Rules that need a dataset, where there is none.
        unchecked_systems: Systems whose weights hang on roles that are not known.
        engine: The engine of ``--engine``; None = none was named.
        untranslated: System that was not looked at for this engine → why.
        ignored: Rules that the experiment ignores.
    """

    format: Literal["fusion-bench-lint"] = "fusion-bench-lint"
    format_version: int = 2
    experiment: str
    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    findings: tuple[WitnessedFinding, ...]
    unchecked: tuple[str, ...] = ()
    unchecked_systems: tuple[str, ...] = ()
    engine: str | None = None
    untranslated: dict[str, str] = Field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def make_lint_report(
    experiment: Experiment,
    source: Source,
    datasets: Sequence[DatasetFacts],
    *,
    systems: Collection[str] | None = None,
    engine: str | None = None,
) -> LintReport:
    """Lint an experiment, and run the real systems on the witness of every finding.

    Args:
        experiment: The experiment; its ``lint.ignore`` and ``expected_lint`` list rules.
        source: Where it was read from.
        datasets: What is known of its datasets; empty = the configuration alone.
        systems: Only these of its systems.
        engine: Name of the dialect of the search engine that shall run them.

    Raises:
        UnknownNameError: There is no such system, or a listed rule is unknown.
        RuntimeError: A witness does not show what its finding claims, which is a bug.
    """
    names = tuple(experiment.systems) if systems is None else tuple(systems)
    chosen = [experiment.find_system(name) for name in names]
    check_rules(experiment, source)
    ignored, expected = experiment.lint.ignore, experiment.expected_lint
    merged = lint_systems(chosen, datasets, ignored=ignored, expected=expected, engine=engine)
    rules = load_rules().items()
    groups = _list_subjects(chosen, datasets)
    shown = () if engine is None else chosen
    reasons = {system.name: explain_untranslated(system) for system in shown}
    return LintReport(
        experiment=name_experiment(source.path),
        datasets=tuple(dataset.name for dataset in datasets),
        systems=names,
        findings=tuple(_add_witness(item, source) for item in merged),
        unchecked=() if datasets else tuple(key for key, rule in rules if rule.facts),
        unchecked_systems=tuple(
            dict.fromkeys(group[0].name for group in groups if group[0].weights is None)
        ),
        engine=engine,
        untranslated={name: reason for name, reason in reasons.items() if reason is not None},
        ignored=ignored,
    )


def _add_witness(item: MergedProblem, source: Source) -> WitnessedFinding:
    witness = item.problem.build_witness()
    outcome, failed = reproduce(witness)
    if failed:
        raise RuntimeError(f"lint {item.id}: the witness does not show it: {'; '.join(failed)}")
    finding = item.to_finding(source).model_dump()
    dropped = [document for document in witness.documents if document not in outcome.ranks]
    documents, lists = [], witness.lists.items()
    for document in (*outcome.ranks, *dropped):
        placed = {name: ranked[document] for name, ranked in lists if document in ranked}
        documents.append(
            WitnessDocument(
                document=document,
                ranks={name: rank for name, (rank, _) in placed.items()},
                scores={name: score for name, (_, score) in placed.items()},
                rerank=witness.rerank.get(document),
                final_rank=outcome.ranks.get(document),
                final_score=outcome.scores.get(document),
            )
        )
    return WitnessedFinding(
        **finding,
        witness=WitnessRecord(
            claim=witness.claim,
            system=witness.system.resolved_config,
            documents=tuple(documents),
        ),
    )
