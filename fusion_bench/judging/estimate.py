"""Differences under few grades of people, estimated with the help of many of a machine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import Field

from fusion_bench.checks.judges import find_scale_warnings, find_shared_families
from fusion_bench.checks.records import DataWarning
from fusion_bench.config.json_records import ReportRecord
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.ordering import IntArray
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.report_file import Provenance
from fusion_bench.evaluation.run_experiment import report_provenance
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.io.dataset import Dataset, load_judge
from fusion_bench.judging.judge_values import (
    JudgeValues,
    list_related,
    load_graded_dataset,
    measure_systems,
)
from fusion_bench.stats import prediction_powered
from fusion_bench.stats.comparison import Answer, MeanDifference
from fusion_bench.stats.inference import MIN_CHANGED
from fusion_bench.stats.intervals import MeanEstimate
from fusion_bench.util.files import name_experiment
from fusion_bench.util.formatting import (
    Columns,
    Progress,
    TableView,
    format_difference,
    format_percent,
    ignore_progress,
    list_names,
    pluralize,
)

#: What a data frame has of each difference, after its measure and system.
COLUMNS: Final = (
    *("difference", "low", "high", "standard_error", "p", "p_adjusted", "answer"),
    *("differing", "few_changes", "weight"),
)


class MeanRecord(MeanDifference):
    """A mean difference by the grades of one judge alone.

    Attributes:
        queries: The queries that this judge graded.
    """

    queries: int


class EstimatedDifference(MeanDifference):
    """One system against the baseline on one measure.

    Attributes:
        measure: Name of the measure.
        candidate: Name of the system.
        difference: Candidate − baseline under people's grades, over all queries.
        low: Lower end of its interval.
        high: Upper end.
        standard_error: Of the difference.
        freedom: Degrees of freedom of the interval.
        p: Two-sided, of Student's t; not adjusted.
        p_adjusted: Times the number of candidates, at most 1; None for any but the primary measure.
        answer: What the estimate shows; None for any but the primary measure.
        weight: λ: how much of the machine's difference counts.
        differing: Queries of people on which their difference and the machine's are .01 or more
            apart.
        few_changes: Fewer than 10 of them: p and interval hold for no machine that is far off on
            other queries, and nothing is shown.
        people: By people's grades alone.
        machine: By the machine's alone: its interval says nothing of its bias.
        judging: What more judging by people would do.
    """

    measure: str
    candidate: str
    standard_error: float
    freedom: float
    p: float
    p_adjusted: float | None
    answer: Answer | None
    weight: float
    differing: int
    few_changes: bool
    people: MeanRecord
    machine: MeanRecord
    judging: prediction_powered.PeoplePlan


class GradeEstimate(TableView, ReportRecord):
    """Systems against a baseline, by people's grades of a sample of the queries and a machine's.

    Attributes:
        name: The experiment.
        dataset: The dataset.
        people: The judge whose grades count.
        machine: The judge who graded all queries.
        baseline: The system compared with.
        measures: The first is the primary one.
        queries: All queries: those that the machine graded.
        people_queries: Those that people graded too.
        alpha: 1 − coverage of all intervals of the primary measure together.
        min_gain: A smaller difference is not worth a change.
        unjudged: ``people`` or ``machine`` → system → share of the top 10 that has no grade.
        trials: System → its trials, where it has several; the intervals hold for these trials.
        related: The lists that come from the machine's own model family.
        differences: By measure, in the order of the systems.
        data_warnings: Greatest grades that differ; the machine, where its family also made a list
            that the systems read.
        provenance: What made it.
    """

    name: str
    dataset: str
    people: str
    machine: str
    baseline: str
    measures: tuple[str, ...]
    queries: int
    people_queries: int
    alpha: float
    min_gain: float
    unjudged: dict[str, dict[str, float]]
    trials: dict[str, int] = Field(default_factory=dict)
    related: tuple[str, ...] = ()
    differences: tuple[EstimatedDifference, ...] = Field(min_length=1)
    data_warnings: tuple[DataWarning, ...] = ()
    provenance: Provenance

    def difference(self, candidate: str, measure: str | None = None) -> EstimatedDifference:
        """One system against the baseline; on the primary measure by default.

        Raises:
            KeyError: There is none.
        """
        wanted = (candidate, measure or self.measures[0])
        for each in self.differences:
            if (each.candidate, each.measure) == wanted:
                return each
        raise KeyError(wanted)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``fusion-bench grades estimate --json`` prints it."""
        return self.model_dump(mode="json")

    def _summary(self) -> str:
        judged = pluralize(self.people_queries, "query")
        first, *others = (each for each in self.differences if each.answer is not None)
        more = f"; {len(others)} more" if others else ""
        interval = format_difference(first.difference, first.low, first.high)
        few = (
            f", not an interval: people and machine differ on {first.differing} of {judged}"
            if first.few_changes
            else ""
        )
        return (
            f"GradeEstimate({self.dataset}: {self.people} on {judged}, {self.machine} on "
            f"{self.queries:,})\n{first.candidate} - {self.baseline}, {first.measure}: "
            f"{interval}{few} ({first.answer}){more}"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a measure and system."""
        rows = self.differences[:limit]
        return {
            "measure": [each.measure for each in rows],
            "system": [each.candidate for each in rows],
            **{name: [getattr(each, name) for each in rows] for name in COLUMNS},
            "people": [each.people.difference for each in rows],
            "machine": [each.machine.difference for each in rows],
            "more_queries": [each.judging.added for each in rows],
        }


#: Differences of people and machine from which a query shows how far the machine is off.
LEAST_DIFFERENCE: Final = 0.01


def estimate_differences(
    people: JudgeValues,
    machine: JudgeValues,
    *,
    alpha: float,
    min_gain: float,
) -> Iterator[EstimatedDifference]:
    """Every other system against the baseline.

    With K of them, the intervals of the primary measure have level α/K each (Bonferroni), so that
    they hold together whatever their correlations. Those of other measures hold each alone.

    Args:
        people: Values on the queries that people graded.
        machine: Values on all queries.
        alpha: Level of the family.
        min_gain: A smaller difference is not worth a change.

    Raises:
        ConfigError: People graded queries that the machine did not, or too few.
    """
    sampled = _find_positions(people, machine)
    candidates = len(machine.systems) - 1
    for m, measure in enumerate(machine.measures):
        level = alpha if m else alpha / candidates
        for pair in machine.pairs(measure):
            name, of_machine = pair.names[0], pair.difference
            of_people = people.pair(name, measure).difference
            try:
                estimate = prediction_powered.estimate_powered_mean(
                    of_people, of_machine, sampled, pair.groups, alpha=level
                )
            except ConfigError as error:
                raise ConfigError(f"--human-judge {people.judge}: {error}") from None
            if pair.is_bounded:
                estimate = estimate.clip(-1, 1)
            # Small differences, as AP has on nearly every query, say nothing of rare large ones.
            differing = int((np.abs(of_people - of_machine[sampled]) >= LEAST_DIFFERENCE).sum())
            family = None if m else candidates
            few_changes = differing < MIN_CHANGED
            answer = None if m else _decide(estimate, level, min_gain, few_changes=few_changes)
            at_hand, total = estimate.people.queries, estimate.machine.queries
            sizes = (2 * at_hand, 4 * at_hand, total)
            yield EstimatedDifference(
                measure=measure,
                candidate=name,
                difference=estimate.mean,
                low=estimate.low,
                high=estimate.high,
                standard_error=estimate.standard_error,
                freedom=estimate.freedom,
                p=estimate.p,
                p_adjusted=None if family is None else min(1.0, family * estimate.p),
                answer=answer,
                weight=estimate.weight,
                differing=differing,
                few_changes=few_changes,
                people=_record_mean(estimate.people),
                machine=_record_mean(estimate.machine),
                judging=prediction_powered.plan_judging(estimate, sizes, alpha=level),
            )


def _find_positions(people: JudgeValues, machine: JudgeValues) -> IntArray:
    """The position of each query of people among the machine's.

    Raises:
        ConfigError: The machine did not grade one.
    """
    positions = {query: n for n, query in enumerate(machine.queries)}
    missing = [query for query in people.queries if query not in positions]
    if missing:
        raise ConfigError(
            f"{pluralize(len(missing), 'query')} of {people.judge!r} without grades of "
            f"{machine.judge!r} ({list_names(missing[:3])}): let the machine grade every query, "
            "also those that people judge"
        )
    return np.array([positions[query] for query in people.queries], dtype=np.int64)


def _decide(
    estimate: prediction_powered.PoweredMean, alpha: float, min_gain: float, *, few_changes: bool
) -> Answer:
    """The answer; see ``stats.comparison``.

    Where people and machine differ on few queries, nothing is shown: the queries that people did
    not judge may hold rare, large errors of the machine.
    """
    has_all = estimate.people.queries == estimate.machine.queries
    if has_all and estimate.half_width == 0 and estimate.mean == 0:
        return "identical"
    if few_changes:
        return "not shown"
    is_within = -min_gain < estimate.low and estimate.high < min_gain
    if estimate.p <= alpha:
        if estimate.mean > 0:
            return "better, by less than min_gain" if is_within else "better"
        return "worse, by less than min_gain" if is_within else "worse"
    return "equivalent" if is_within else "not shown"


def _record_mean(estimate: MeanEstimate) -> MeanRecord:
    return MeanRecord(
        difference=estimate.mean, low=estimate.low, high=estimate.high, queries=estimate.queries
    )


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
    _check_judges(loaded, people, machine)
    grades = {name: load_judge(loaded, name) for name in (people, machine)}
    progress(f"{loaded.name}: {people}", 0, 2)
    by_people = measure_systems(chosen, source, loaded, people, grades[people])
    progress(f"{loaded.name}: {machine}", 1, 2)
    by_machine = measure_systems(chosen, source, loaded, machine, grades[machine])
    _refuse_missing_grades(by_people, by_machine)
    differences = estimate_differences(
        by_people, by_machine, alpha=chosen.alpha, min_gain=chosen.min_gain
    )
    primary = by_machine.values_of(by_machine.measures[0])
    counts = {name: values.count for name, values in primary.items()}
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
        trials={name: count for name, count in counts.items() if count > 1},
        related=list_related(loaded, machine, chosen.systems.values()),
        differences=tuple(differences),
        data_warnings=(
            *find_scale_warnings(grades),
            *find_shared_families(loaded, [machine], chosen.systems.values()),
        ),
        provenance=report_provenance(chosen, source),
    )


def _refuse_missing_grades(people: JudgeValues, machine: JudgeValues) -> None:
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
            f"--human-judge {people.judge}: graded {shares[0]} of the top 10 of {worst}, and "
            f"{machine.judge} {shares[1]}: the estimate would be of missing grades. Let "
            "people judge all that the systems return for their queries: fusion-bench judge "
            f"EXPERIMENT --judge {people.judge} --queries FILE"
        )


def _check_judges(dataset: Dataset, people: str, machine: str) -> None:
    """Refuse judges whose grades allow no estimate.

    Raises:
        UnknownNameError: The dataset has no such judge.
        ConfigError: A judge of the wrong kind, or people whose queries are no random sample.
    """
    judges, qrels = dataset.spec.judges, dataset.spec.qrels
    kinds = {name: each.kind for name, each in judges.items()}
    if qrels is not None:
        kinds = {"qrels": qrels.kind, **kinds}
    for option, name, kind in (
        ("--human-judge", people, "human"),
        ("--machine-judge", machine, "machine"),
    ):
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
            f"--human-judge {people}: its queries are no random sample ('sample: chosen' in "
            f"judges), so that no interval would hold: {advice}, and name their file as another "
            "judge with 'sample: random'"
        )
    place = f"judges.{people}" if people in judges else "judges"
    raise ConfigError(
        f"--human-judge {people}: {place} of {dataset.name} does not state how its queries were "
        "chosen, and the interval needs a random sample: write 'sample: random' there if they are "
        f"one; else {advice}, and name their file there"
    )
