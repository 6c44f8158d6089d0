"""The same systems under the grades of every judge of a dataset."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from fusion_bench.checks.judges import find_scale_warnings, find_shared_families
from fusion_bench.checks.records import DataWarning
from fusion_bench.config.json_records import OptionalFloat, ReportRecord
from fusion_bench.config.models import refuse_repeats
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.report_file import Provenance
from fusion_bench.evaluation.report_records import Collection as CollectionRecord
from fusion_bench.evaluation.run_experiment import report_provenance, run_on_datasets
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_config import JudgeKind
from fusion_bench.io.load_records import load_judge
from fusion_bench.judging.judge_values import list_related, load_graded_dataset, with_grades
from fusion_bench.stats.agreement import RankCorrelation, kendall_tau
from fusion_bench.stats.comparison import BETTER, WORSE, Answer, paired_difference
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.util.files import name_experiment
from fusion_bench.util.formatting import (
    Columns,
    Progress,
    TableView,
    ignore_progress,
    list_names,
    pluralize,
)

#: What judges say of a system together: the same; better and worse; shown by some of them only.
Stability: TypeAlias = Literal["same", "reversed", "not shown by all"]


class ComparedJudge(ReportRecord):
    """One judge.

    Attributes:
        name: Its name; ``qrels`` = the judgments.
        kind: People or a machine.
        family: The family of the machine's model; None = not stated.
        queries: The queries that it graded.
        sample: How these were chosen; None = not stated.
        unjudged: System → share of its top 10 without a grade, over the common queries.
        related: The lists that come from the judge's own model family.
    """

    name: str
    kind: JudgeKind
    family: str | None
    queries: int
    sample: Literal["random", "chosen"] | None
    unjudged: dict[str, OptionalFloat]
    related: tuple[str, ...] = ()


class JudgeVerdict(ReportRecord):
    """One system under the grades of one judge, on the primary measure.

    Attributes:
        judge: Its name.
        mean: Over the common queries.
        difference: To the baseline; None for the baseline itself.
        low: Lower end of its interval; None likewise, and with one group.
        high: Upper end.
        p_adjusted: Over all systems; None for the baseline.
        answer: As ``eval`` gives it; None for the baseline.
        shift: This judge's difference − the reference judge's; None for either's own row.
        shift_low: Lower end of the interval of the shift; these hold together (Bonferroni).
        shift_high: Upper end.
    """

    judge: str
    mean: OptionalFloat
    difference: OptionalFloat = None
    low: OptionalFloat = None
    high: OptionalFloat = None
    p_adjusted: OptionalFloat = None
    answer: Answer | None = None
    shift: OptionalFloat = None
    shift_low: OptionalFloat = None
    shift_high: OptionalFloat = None


class SystemSensitivity(ReportRecord):
    """One system under the grades of every judge.

    Attributes:
        system: Its name.
        verdicts: One a judge, in their order.
        stability: What they say together; None for the baseline.
    """

    system: str
    verdicts: tuple[JudgeVerdict, ...]
    stability: Stability | None


class OrderAgreement(RankCorrelation):
    """How far two judges agree on the order of the systems.

    Attributes:
        first: The one.
        second: The other.
        swapped: The pairs in the opposite order, the better one to the first judge first.
    """

    first: str
    second: str
    swapped: tuple[tuple[str, str], ...]


class JudgeSensitivity(TableView, ReportRecord):
    """The systems of an experiment under the grades of several judges.

    Attributes:
        name: The experiment.
        dataset: The dataset.
        measure: The primary measure.
        baseline: The system compared with.
        alpha: Level of each judge's comparisons together.
        min_gain: A smaller difference is not worth a change.
        queries: The queries that all judges graded.
        judges: The first is the reference.
        systems: In the order of the experiment.
        orders: One a pair of judges.
        data_warnings: Greatest grades that differ; judges whose family also made a list that the
            systems read.
        provenance: What made it.
    """

    name: str
    dataset: str
    measure: str
    baseline: str
    alpha: float
    min_gain: float
    queries: int
    judges: tuple[ComparedJudge, ...]
    systems: tuple[SystemSensitivity, ...]
    orders: tuple[OrderAgreement, ...]
    data_warnings: tuple[DataWarning, ...] = ()
    provenance: Provenance

    @property
    def unstable(self) -> tuple[SystemSensitivity, ...]:
        """The systems of which not all judges say the same."""
        return tuple(each for each in self.systems if each.stability not in (None, "same"))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``fusion-bench grades sensitivity --json`` prints it."""
        return self.model_dump(mode="json")

    def _summary(self) -> str:
        judges = pluralize(len(self.judges), "judge")
        unstable = list_names([each.system for each in self.unstable]) or "no system"
        return (
            f"JudgeSensitivity({self.dataset}, {self.measure}: {judges} on "
            f"{pluralize(self.queries, 'query')})\nThe verdict depends on the judge for: {unstable}"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a system and judge."""
        rows = [(each, verdict) for each in self.systems for verdict in each.verdicts][:limit]
        return {
            "system": [each.system for each, _ in rows],
            **{
                name: [getattr(verdict, name) for _, verdict in rows]
                for name in JudgeVerdict.model_fields
            },
            "stability": [each.stability for each, _ in rows],
        }


#: Means that agree to as many decimal places tie.
TIE_PLACES = 12


def _compare_systems(
    collections: Mapping[str, CollectionRecord], *, alpha: float
) -> Iterator[SystemSensitivity]:
    """Every system under every judge.

    Args:
        collections: By judge, on the same queries and systems; the first is the reference.
        alpha: Level of the intervals of all shifts together.
    """
    reference, *others = collections.values()
    shifts = max(1, len(others) * (len(reference.competitors) - 1))
    for name in reference.competitors:
        verdicts = tuple(
            _record_verdict(judge, collection, reference, name, alpha / shifts)
            for judge, collection in collections.items()
        )
        answers = [each.answer for each in verdicts if each.answer is not None]
        yield SystemSensitivity(
            system=name,
            verdicts=verdicts,
            stability=find_stability(answers) if answers else None,
        )


def find_stability(answers: Sequence[Answer]) -> Stability:
    """Whether judges say the same: better, worse, or neither."""
    signs = {1 if each in BETTER else -1 if each in WORSE else 0 for each in answers}
    if len(signs) == 1:
        return "same"
    return "reversed" if {1, -1} <= signs else "not shown by all"


def compare_orders(collections: Mapping[str, CollectionRecord]) -> Iterator[OrderAgreement]:
    """Kendall's τ of the orders of each two judges.

    Args:
        collections: By judge, on the same queries and systems.
    """
    means = {judge: _list_means(collection) for judge, collection in collections.items()}
    names = list(next(iter(collections.values())).competitors)
    for first, second in combinations(collections, 2):
        correlation = kendall_tau(means[first], means[second])
        yield OrderAgreement(
            first=first,
            second=second,
            **dict(correlation),
            swapped=tuple(_list_swapped(names, means[first], means[second])),
        )


def _list_swapped(
    names: Sequence[str], first: FloatArray, second: FloatArray
) -> Iterator[tuple[str, str]]:
    for a, b in combinations(range(len(names)), 2):
        if (first[a] - first[b]) * (second[a] - second[b]) < 0:
            yield (names[a], names[b]) if first[a] > first[b] else (names[b], names[a])


def _list_means(collection: CollectionRecord) -> FloatArray:
    """The means of the systems on the primary measure, (S,)."""
    rows = (row.measures[collection.primary_measure] for row in collection.competitors.values())
    means = [np.nan if row.mean is None else row.mean for row in rows]
    return np.asarray(np.round(means, TIE_PLACES), np.float64)


def _record_verdict(
    judge: str, collection: CollectionRecord, reference: CollectionRecord, name: str, alpha: float
) -> JudgeVerdict:
    mean = collection.system(name).measures[collection.primary_measure].mean
    compared = collection.comparison(name, collection.primary_measure)
    if compared is None:
        return JudgeVerdict(judge=judge, mean=mean)
    shift: dict[str, float] = {}
    if collection is not reference:
        change = _list_differences(collection, name) - _list_differences(reference, name)
        groups = number_by_appearance(collection.groups)[0]
        estimate = estimate_mean(change, groups, alpha=alpha)
        shift = {"shift": estimate.mean, "shift_low": estimate.low, "shift_high": estimate.high}
    return JudgeVerdict(
        judge=judge,
        mean=mean,
        difference=compared.difference,
        low=compared.low,
        high=compared.high,
        p_adjusted=compared.p,
        answer=compared.answer,
        **shift,
    )


def _list_differences(collection: CollectionRecord, name: str) -> FloatArray:
    """System − baseline by query on the primary measure, (Q,)."""
    values = collection.system_values()
    return paired_difference(values[name][0], values[collection.baseline][0])


#: Stands for the judgments among the judges.
JUDGMENTS = "qrels"


def judge_experiment(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    judges: Sequence[str] = (),
    systems: Sequence[str] = (),
    dataset: str | None = None,
    progress: Progress = ignore_progress,
) -> JudgeSensitivity:
    """Evaluate the same systems under each judge, on the queries that all of them graded.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        folders: Where named datasets live.
        judges: Names, the reference first; empty = the judgments, then all others.
        systems: Names, beside the baseline; empty = all.
        dataset: As the experiment names it; None = its only one.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, a name is unknown, or there are
            no two judges with a query in common.
    """
    chosen, loaded = load_graded_dataset(
        experiment, source, folders=folders, systems=systems, dataset=dataset, progress=progress
    )
    grades = {name: load_judge(loaded, name) for name in _choose_judges(loaded, judges)}
    common = _find_common_queries(loaded.name, grades)
    collections: dict[str, CollectionRecord] = {}
    for done, (name, qrels) in enumerate(grades.items()):
        progress(f"{loaded.name}: {name}", done, len(grades))
        judged = with_grades(loaded, keep_queries(qrels, common))
        report = run_on_datasets(chosen, source, [judged], allowed=("unmatched", "suspect"))
        collections[name] = report.collections[0]
    reference = next(iter(collections.values()))
    return JudgeSensitivity(
        name=name_experiment(source.path),
        dataset=loaded.name,
        measure=reference.primary_measure,
        baseline=chosen.baseline,
        alpha=chosen.alpha,
        min_gain=chosen.min_gain,
        queries=len(reference.queries),
        judges=tuple(_describe_judges(loaded, grades, collections, chosen.systems.values())),
        systems=tuple(_compare_systems(collections, alpha=chosen.alpha)),
        orders=tuple(compare_orders(collections)),
        data_warnings=(
            *find_scale_warnings(grades),
            *find_shared_families(loaded, grades, chosen.systems.values()),
        ),
        provenance=report_provenance(chosen, source),
    )


def _choose_judges(dataset: Dataset, names: Sequence[str]) -> tuple[str, ...]:
    """The judges to compare, the reference first.

    Args:
        dataset: The dataset.
        names: As asked for; empty = all.

    Raises:
        ConfigError: Fewer than two, or one twice.
    """
    judgments = () if dataset.spec.qrels is None else (JUDGMENTS,)
    every = tuple(dict.fromkeys((*judgments, *dataset.spec.judges)))
    try:
        chosen = refuse_repeats(tuple(names)) or every
    except ValueError as error:
        raise ConfigError(f"--judge: {error}") from None
    if len(chosen) < 2:
        raise ConfigError(
            f"{dataset.name}: one judge ({list_names(chosen)}), and at least two are needed: name "
            "the file of another under 'judges' of its dataset.yaml"
        )
    return chosen


def _find_common_queries(dataset: str, grades: Mapping[str, Qrels]) -> frozenset[str]:
    """The queries that every judge graded.

    Raises:
        ConfigError: There is none.
    """
    common = frozenset.intersection(*(frozenset(each.queries) for each in grades.values()))
    if not common:
        counts = ", ".join(f"{name}: {len(each):,}" for name, each in grades.items())
        raise ConfigError(
            f"{dataset}: no query that all of these judges graded ({counts}): choose others with "
            "--judge"
        )
    return common


def keep_queries(qrels: Qrels, queries: Collection[str]) -> Qrels:
    """The grades of these queries."""
    if len(queries) == len(qrels.queries):
        return qrels
    kept = {query: rows for query, rows in qrels.to_dict().items() if query in queries}
    return Qrels.from_dict(kept)


def _describe_judges(
    dataset: Dataset,
    grades: Mapping[str, Qrels],
    collections: Mapping[str, CollectionRecord],
    systems: Collection[System],
) -> Iterator[ComparedJudge]:
    spec = dataset.spec
    for name, collection in collections.items():
        judge = spec.judges.get(name)
        file = judge or spec.qrels
        yield ComparedJudge(
            name=name,
            kind="human" if file is None else file.kind,
            family=None if file is None else file.family,
            queries=len(grades[name].queries),
            sample=None if judge is None else judge.sample,
            unjudged={row.name: row.unjudged_share for row in collection.competitors.values()},
            related=list_related(dataset, name, systems),
        )
