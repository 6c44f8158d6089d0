"""The result file of a tuning run: trials, choice and gains.

Everything shown to people is rendered from this record.

Format history:
    1   first version
    2   ``front`` holds the points of all rerankers, their intervals, and where effort is known from
    3   ``parameters`` say of which weights the ratio counts, and what is lost without each one
    4   no line search; the rule ``sceptical`` is ``shrinkage``, ``salt`` is ``split_seed``,
        ``typed`` is ``per_type``
    5   ``lint``
    6   ``thresholds`` of every list with absolute scores, the tuned system's first
    7   verdicts ``unjudged decide`` and ``too few tuning queries``, ``level``; verdicts of one run
        are one family; ``needed`` has an interval; ``unjudged`` instead of ``judged_only``;
        ``shrunken``; ``floor``
    8   ``split_choice``; ``held_out`` of the settings may be ``auto``;
        ``data`` with ``warnings``
    9   ``bounds`` of ``data``, ``floor``, ``by_type``, ``by_intent`` and the points of ``front``
    10  ``shrunken`` is a number
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from fusion_bench.data.query_groups.find_groups import Grouping
from fusion_bench.evaluation.report_records.lint_finding import LintFinding
from fusion_bench.evaluation.report_records.near_duplicates import NearDuplicates
from fusion_bench.evaluation.report_records.needed_queries import NeededQueries
from fusion_bench.evaluation.report_records.record import ReportRecord
from fusion_bench.evaluation.report_records.report import Provenance
from fusion_bench.evaluation.report_records.results.system import CompletionBounds
from fusion_bench.evaluation.report_records.results.unjudged import UnjudgedResult
from fusion_bench.report.tuning_records.class_gains import (
    IntentGain,
    PerTypeResult,
    TypeGain,
)
from fusion_bench.report.tuning_records.data_facts import DataFacts
from fusion_bench.report.tuning_records.floor import FloorRow
from fusion_bench.report.tuning_records.look import Look
from fusion_bench.report.tuning_records.pareto_front import ParetoFront
from fusion_bench.report.tuning_records.sensitivity import Fold, Importance, Plateau
from fusion_bench.report.tuning_records.split_choice import SplitChoice
from fusion_bench.report.tuning_records.thresholds import ThresholdReport
from fusion_bench.report.tuning_records.trials import (
    MEAN_NOISE,
    Gain,
    ParameterInfo,
    Trial,
    TuningVerdict,
    Value,
)
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns, TableView

FORMAT: Literal["fusion-bench-tuning"] = "fusion-bench-tuning"
FORMAT_VERSION = 10


class Choice(ReportRecord):
    """What was chosen.

    Attributes:
        rule: ``shrinkage`` = the greatest gain over the default after shrinkage;
            ``best``; or ``one_standard_error`` = nearest to the default among those within one
            standard error of the best.
        trial: Number of the trial.
        params: Its numbers.
        config: The resolved system.
    """

    rule: Literal["shrinkage", "best", "one_standard_error"]
    trial: int
    params: dict[str, Value]
    config: dict[str, Any]


class TuningReport(TableView, ReportRecord):
    """One tuning run of one system on one dataset.

    Attributes:
        format: Always ``fusion-bench-tuning``.
        format_version: See the history in this module.
        name: The experiment.
        dataset: The dataset.
        fingerprint: SHA-256 over its contents.
        system: Name of the tuned system.
        measure: What was tuned for, as the dataset resolves it.
        split: How tuning and held-out queries were told apart, in words.
        split_seed: What was hashed with their ids; None = the dataset's own split.
        split_choice: Why these queries decide; None = not known.
        settings: Sampler, trials, seed, alpha, interval, least gain, folds, …
        parameters: What was tuned.
        default: The resolved default system.
        choice: What was chosen.
        tune: Tuned − default on the queries that it was chosen on: too good by construction.
        nested: The same by nested cross-validation; None = not asked for. It estimates.
        held_out: The same on the held-out queries: this decides.
        level: One-sided level of the verdicts; intervals cover 1 − 2 · this.
        verdict: What that allows to be said.
        shrunken: With ``ship`` the gain given that its test was passed, inside the interval of
            ``held_out``; None = another verdict, or no interval.
        needed: Held-out queries that would show the least gain with power .8; None = not known.
        look: Which look at these held-out queries it is; None = the default was chosen, so that
            nothing was looked at.
        unjudged: What unjudged documents could change in the held-out difference; None = all
            judgments are complete.
        floor: Untuned systems and single sources on the held-out queries, the best first.
        synthetic_queries: Queries that a model wrote; where there are any, all are.
        grouping: How the declared groups were joined.
        near_duplicates: Queries that depend on each other though no group says so; None = few or
            none.
        data: What speaks against the held-out values; None = not measured.
        folds: Nested cross-validation, fold by fold.
        plateau: How much the numbers matter; None = not sampled.
        importances: Most important first; empty where too few trials tell.
        by_type: Held-out gain by query type, where there are several.
        by_intent: Held-out gain by intent, where there are several.
        front: Quality against rerank effort; None without a reranker, or not asked for.
        thresholds: CRAG's thresholds of each list with absolute scores, the tuned system's first;
            empty = not asked for.
        per_type: Tuned by query type or intent; None = not asked for, or none has queries enough.
        trials: Everything that was tried.
        held_out_queries: Ids, …
        held_out_values: … and (default, tuned) of each.
        list_trials: Values are means over so many trials of the lists; 1 = each has one file.
        interrupted: Whether the search was cut short.
        provenance: Where the numbers come from.
        lint: What lint finds in the default and the tuned system, see ``docs/lint.md``.
    """

    format: Literal["fusion-bench-tuning"] = FORMAT
    format_version: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    name: str
    dataset: str
    fingerprint: str
    system: str
    measure: str
    split: str
    split_seed: str | None
    split_choice: SplitChoice | None = None
    settings: dict[str, Any]
    parameters: tuple[ParameterInfo, ...]
    default: dict[str, Any]
    choice: Choice
    tune: Gain
    nested: Gain | None
    held_out: Gain
    level: float = 0.025
    verdict: TuningVerdict
    shrunken: float | None = None
    needed: NeededQueries | None
    look: Look | None = None
    unjudged: UnjudgedResult | None = None
    floor: tuple[FloorRow, ...] = ()
    grouping: Grouping = "identical"
    near_duplicates: NearDuplicates | None = None
    synthetic_queries: int = 0
    data: DataFacts | None = None
    folds: tuple[Fold, ...] = ()
    plateau: Plateau | None = None
    importances: tuple[Importance, ...] = ()
    by_type: tuple[TypeGain, ...] = ()
    by_intent: tuple[IntentGain, ...] = ()
    front: ParetoFront | None = None
    thresholds: tuple[ThresholdReport, ...] = ()
    per_type: PerTypeResult | None = None
    trials: tuple[Trial, ...]
    held_out_queries: tuple[str, ...]
    held_out_values: tuple[tuple[float, float], ...]
    list_trials: int = 1
    interrupted: bool = False
    provenance: Provenance
    lint: tuple[LintFinding, ...] = ()

    @property
    def is_cross_fitted(self) -> bool:
        """Whether every query was held out once, and tuned on otherwise."""
        return self.split_choice is not None and self.split_choice.design == "all"

    @property
    def class_gains(self) -> dict[str, list[tuple[str | None, Gain]]]:
        """The held-out gain of each query type and of each intent, by the field they are of."""
        return {
            "type": [(item.type, item.gain) for item in self.by_type],
            "intent": [(item.intent, item.gain) for item in self.by_intent],
        }

    @property
    def held_out_bounds(self) -> list[tuple[str, dict[str, CompletionBounds]]]:
        """What unjudged documents could make of held-out means, by system.

        All held-out queries come first, then each query type and each intent; there is nothing
        where judgments are complete.
        """
        known = [("all", {} if self.data is None else self.data.bounds)]
        known += [(_name_class("type", item.type), item.bounds) for item in self.by_type]
        known += [(_name_class("intent", item.intent), item.bounds) for item in self.by_intent]
        return [(name, bounds) for name, bounds in known if bounds]

    def _summary(self) -> str:
        trials = pluralize(len(self.trials), "trial")
        names = f"{self.system} on {self.dataset}"
        return f"TuningReport({self.name!r}, {names}, {self.measure}: {self.verdict}, {trials})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a trial."""
        trials = self.trials[:limit]
        paths = [parameter.path for parameter in self.parameters]
        return {
            "number": [trial.number for trial in trials],
            "value": [trial.value for trial in trials],
            "origin": [trial.origin for trial in trials],
            **{path: [trial.params.get(path) for trial in trials] for path in paths},
        }

    @property
    def completed_trials(self) -> tuple[Trial, ...]:
        """The trials that could be computed."""
        return tuple(trial for trial in self.trials if trial.value is not None)

    @property
    def is_default_chosen(self) -> bool:
        """Whether the search chose the default itself: then no held-out query can differ."""
        return any(
            trial.origin == "default" for trial in self.trials if trial.number == self.choice.trial
        )

    @property
    def optimism(self) -> float | None:
        """Share of the tuning gain that the held-out queries did not confirm.

        None where there was no gain to lose.
        """
        if not self.tune.difference > 0:
            return None
        return 1 - self.held_out.difference / self.tune.difference

    @property
    def ablation_losses(self) -> dict[str, float]:
        """Path → loss on the tuning queries with this parameter alone back at its default."""
        return {
            parameter.path: self.tune.tuned - parameter.reset
            for parameter in self.parameters
            if parameter.reset is not None
        }

    @property
    def fold_spreads(self) -> dict[str, float]:
        """Path of a number → distance between the folds' values, as a share of its range."""
        spreads = {}
        for parameter in self.parameters:
            values = [fold.params.get(parameter.path) for fold in self.folds]
            present = [value for value in values if value is not None]
            if present and parameter.kind != "choice":
                positions = [parameter.range.unit_position(value) for value in present]
                spreads[parameter.path] = max(positions) - min(positions)
        return spreads

    @property
    def untuned_match(self) -> FloorRow | None:
        """What, untuned, does best of all that has no lower held-out mean; None = nothing.

        Rows that are shown to be as good as the tuned system come first.
        """
        rows = sorted(self.floor, key=lambda row: not row.is_as_good)
        return next((row for row in rows if row.is_not_below), None)

    @property
    def better_trials(self) -> int:
        """Trials with a higher mean than the default on the tuning queries."""
        done = self.completed_trials
        default = next((t.value for t in done if t.origin == "default"), None)
        values = [trial.value for trial in done if trial.value is not None]
        return 0 if default is None else sum(value > default + MEAN_NOISE for value in values)

    @property
    def alpha(self) -> float:
        """1 − coverage of the intervals."""
        return 2 * self.level

    @property
    def min_gain(self) -> float:
        """A smaller gain is not worth a change."""
        return float(self.settings.get("min_gain", 0.005))


def _name_class(field: str, value: str | None) -> str:
    """``type local``, or ``(no type)``."""
    return f"(no {field})" if value is None else f"{field} {value}"
