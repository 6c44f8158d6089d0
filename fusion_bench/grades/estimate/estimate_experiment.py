"""Estimate the differences of an experiment's systems from the grades of people and a machine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.judge_checks.dataset_judges import find_shared_families
from fusion_bench.evaluation.judge_checks.judge_warnings import find_scale_warnings
from fusion_bench.evaluation.run_experiment import Progress, ignore_progress, report_provenance
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.grades.estimate.estimate_differences import estimate_differences
from fusion_bench.grades.estimate.records import GradeEstimate
from fusion_bench.grades.system_values import (
    JudgeValues,
    list_related,
    load_graded_dataset,
    measure_systems,
)
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.judgments.load_judge import load_judge
from fusion_bench.util.files.output_folder import name_experiment
from fusion_bench.util.formatting import format_percent

#: How much more of a system's top 10 people may leave without a grade than the machine.
MOST_MISSING = 0.2


def estimate_experiment(
    experiment: Experiment,
    source: Source,
    *,
    people: str,
    machine: str,
    folders: Collection[Path],
    systems: Sequence[str] = (),
    dataset: str | None = None,
    progress: Progress = ignore_progress,
) -> GradeEstimate:
    """Estimate every difference under people's grades over all queries.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        people: The judge of kind ``human`` who graded a random sample of the queries.
        machine: The judge of kind ``machine`` who graded all queries; ``qrels`` = the judgments.
        folders: Where named datasets live.
        systems: Names, beside the baseline; empty = all.
        dataset: As the experiment names it; None = its only one.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, a name is unknown, or people's
            queries are not declared as a random sample, or they left out too much.
    """
    chosen, loaded = load_graded_dataset(
        experiment, source, folders=folders, systems=systems, dataset=dataset, progress=progress
    )
    check_judges(loaded, people, machine)
    grades = {name: load_judge(loaded, name) for name in (people, machine)}
    progress(f"{loaded.name}: {people}", 0, 2)
    by_people = measure_systems(chosen, source, loaded, people, grades[people])
    progress(f"{loaded.name}: {machine}", 1, 2)
    by_machine = measure_systems(chosen, source, loaded, machine, grades[machine])
    refuse_missing_grades(by_people, by_machine)
    differences = estimate_differences(
        by_people, by_machine, chosen.baseline, alpha=chosen.alpha, min_gain=chosen.min_gain
    )
    return GradeEstimate(
        name=name_experiment(source.path),
        dataset=loaded.name,
        people=people,
        machine=machine,
        baseline=chosen.baseline,
        measures=by_machine.measures,
        queries=len(by_machine.queries),
        people_queries=len(by_people.queries),
        alpha=chosen.alpha,
        min_gain=chosen.min_gain,
        unjudged={"people": dict(by_people.unjudged), "machine": dict(by_machine.unjudged)},
        trials=dict(by_machine.trials),
        related=list_related(loaded, machine, chosen.systems.values()),
        differences=tuple(differences),
        data_warnings=(
            *find_scale_warnings(grades),
            *find_shared_families(loaded, [machine], chosen.systems.values()),
        ),
        provenance=report_provenance(chosen, source),
    )


def refuse_missing_grades(people: JudgeValues, machine: JudgeValues) -> None:
    """Refuse people who graded far less of what the systems return than the machine did.

    Documents that few grades reach, as those of ``judge --next``, would count as not relevant to
    people alone: the difference would be that of missing grades.

    Raises:
        ConfigError: Of a system's top 10, people's share without a grade is greater by more than
            :data:`MOST_MISSING`.
    """
    missing = {name: share - machine.unjudged[name] for name, share in people.unjudged.items()}
    worst = max(missing, key=lambda name: missing[name])
    if missing[worst] > MOST_MISSING:
        shares = [format_percent(1 - each.unjudged[worst]) for each in (people, machine)]
        raise ConfigError(
            f"--people {people.judge}: graded {shares[0]} of the top 10 of {worst}, and "
            f"{machine.judge} {shares[1]}: the estimate would be that of missing grades. Let "
            "people judge all that the systems return for their queries: fusion-bench judge "
            f"EXPERIMENT --judge {people.judge} --queries FILE"
        )


def check_judges(dataset: Dataset, people: str, machine: str) -> None:
    """Refuse judges whose grades allow no estimate.

    Raises:
        UnknownNameError: The dataset has no such judge.
        ConfigError: A judge of the wrong kind, or people whose queries are no random sample.
    """
    judges, qrels = dataset.spec.judges, dataset.spec.qrels
    kinds = {name: each.kind for name, each in judges.items()}
    if qrels is not None:
        kinds = {"qrels": qrels.kind, **kinds}
    for option, name, kind in (("--people", people, "human"), ("--machine", machine, "machine")):
        if name not in kinds:
            raise UnknownNameError("judge", name, kinds, where=f"{option}: {dataset.name}")
        if kinds[name] != kind:
            raise ConfigError(
                f"{option} {name}: its kind is {kinds[name]!r}, and {kind!r} is needed: name "
                f"another judge, or correct its 'kind' in the dataset.yaml of {dataset.name}"
            )
    sample = judges[people].sample if people in judges else None
    if sample == "random":
        return
    advice = "draw queries with 'fusion-bench grades sample', let people judge these"
    if sample == "chosen":
        raise ConfigError(
            f"--people {people}: its queries are no random sample ('sample: chosen' in judges), so "
            f"that no interval would hold: {advice}, and name their file as another judge with "
            "'sample: random'"
        )
    place = f"judges.{people}" if people in judges else "judges"
    raise ConfigError(
        f"--people {people}: {place} of {dataset.name} does not say how its queries were chosen, "
        "and the interval needs a random sample: write 'sample: random' there if they are one; "
        f"else {advice}, and name their file there"
    )
