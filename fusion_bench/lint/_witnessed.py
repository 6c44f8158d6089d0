"""The report of ``fusion-bench lint``: findings with witnesses that real systems reproduce."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.errors import UnknownNameError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.lint._base import load_rules
from fusion_bench.lint._lint_experiment import (
    MergedProblem,
    check_ignored,
    lint_systems,
    list_unchecked,
)
from fusion_bench.lint._record import (
    LintReport,
    WitnessDocument,
    WitnessedFinding,
    WitnessRecord,
)
from fusion_bench.lint._subject import DatasetFacts
from fusion_bench.lint._witness import Outcome, Witness, reproduce
from fusion_bench.lint.engine_cannot_express import explain_untranslated
from fusion_bench.util.files.output_folder import name_experiment


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
        experiment: The experiment; its ``lint.ignore`` names rules to leave out.
        source: Where it was read from.
        datasets: What is known of its datasets; empty = the configuration alone.
        systems: Only these of its systems.
        engine: Name of the dialect of the search engine that shall run them.

    Raises:
        UnknownNameError: There is no such system, or ``lint.ignore`` names no rule.
        RuntimeError: A witness does not show what its finding claims, which is a bug.
    """
    names = tuple(experiment.systems) if systems is None else tuple(systems)
    for name in names:
        if name not in experiment.systems:
            raise UnknownNameError("system", name, experiment.systems, where="--system")
    check_ignored(experiment, source)
    ignored = experiment.lint.ignore
    chosen = [experiment.systems[name] for name in names]
    merged = lint_systems(chosen, datasets, ignored=ignored, engine=engine)
    rules = load_rules().items()
    return LintReport(
        experiment=name_experiment(source.path),
        datasets=tuple(dataset.name for dataset in datasets),
        systems=names,
        findings=tuple(_add_witness(item, source) for item in merged),
        unchecked=() if datasets else tuple(key for key, rule in rules if rule.facts),
        unchecked_systems=list_unchecked(chosen, datasets),
        engine=engine,
        untranslated={} if engine is None else _list_untranslated(chosen),
        ignored=ignored,
    )


def _list_untranslated(systems: Iterable[System]) -> dict[str, str]:
    """The systems of which nothing is said for an engine, and why."""
    reasons = {system.name: explain_untranslated(system) for system in systems}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _add_witness(item: MergedProblem, source: Source) -> WitnessedFinding:
    witness = item.problem.build_witness()
    outcome, failed = reproduce(witness)
    if failed:
        raise RuntimeError(f"lint {item.id}: the witness does not show it: {'; '.join(failed)}")
    finding = item.to_finding(source).model_dump()
    return WitnessedFinding(**finding, witness=_record_witness(witness, outcome))


def _record_witness(witness: Witness, outcome: Outcome) -> WitnessRecord:
    dropped = [document for document in witness.documents if document not in outcome.ranks]
    return WitnessRecord(
        claim=witness.claim,
        system=witness.system.resolved_config,
        documents=tuple(
            _record_document(document, witness, outcome) for document in (*outcome.ranks, *dropped)
        ),
    )


def _record_document(document: str, witness: Witness, outcome: Outcome) -> WitnessDocument:
    lists = witness.lists.items()
    placed = {name: ranked[document] for name, ranked in lists if document in ranked}
    return WitnessDocument(
        document=document,
        ranks={name: rank for name, (rank, _) in placed.items()},
        scores={name: score for name, (_, score) in placed.items()},
        rerank=witness.rerank.get(document),
        final_rank=outcome.ranks.get(document),
        final_score=outcome.scores.get(document),
    )
