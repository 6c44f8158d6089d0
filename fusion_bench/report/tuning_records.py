"""The stored record of a tuning run: trials, choice, gains, what speaks against them.

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
    11  ``recommendation``, ``verdict_against_default`` instead of ``verdict``; ``loss_share`` of
        gains; neither ``shrunken`` nor ``split_choice``: every query decides at most once
    12  ``other_means``
    13  ``abstain``
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from fusion_bench.checks.records import DataWarning, LintFinding, ListInfo, NearDuplicates
from fusion_bench.config.json_records import OptionalFloat, ReportRecord
from fusion_bench.config.parameters import Parameter
from fusion_bench.config.query_types import CLASS_KEYS
from fusion_bench.data.query_groups import Grouping
from fusion_bench.evaluation.report_file import Provenance
from fusion_bench.evaluation.report_records import ScoredList, ThresholdPair
from fusion_bench.evaluation.thresholds import ChosenSignal
from fusion_bench.report.answer_texts import name_verdict
from fusion_bench.stats.comparison import Answer, Difference, MeanDifference
from fusion_bench.stats.power import SampleSize
from fusion_bench.stats.unjudged import CompletionBounds, UnjudgedResult
from fusion_bench.util.formatting import Columns, TableView, pluralize

#: What a parameter may be set to.
Value: TypeAlias = bool | int | float | str | None
#: What held-out queries allow to be said of tuned parameters; see ``tune.trial_selection``.
TuningVerdict: TypeAlias = Literal[
    "unjudged decide",
    "too few tuning queries",
    "worse",
    "keep",
    "ship",
    "groups decide",
    "too few queries",
]

#: Two means of the same numbers differ by less.
MEAN_NOISE = 1e-9


class ParameterInfo(ReportRecord):
    """One thing that was tuned.

    Attributes:
        path: Where it stands in the system, as ``fusion.k``.
        kind: ``float``, ``int`` or ``choice``.
        low: Lower end of its range; None for a choice.
        high: Upper end.
        log: Whether it was searched on a logarithmic scale.
        choices: What a choice could be.
        condition: When it exists at all, in words; empty = always.
        default: What the default has; None where it does not exist there.
        ratio: Whether in the chosen system only its ratio to the other weights counts.
        reset: Mean over the tuning queries of the chosen system with this alone back at the
            default's value; None = it is there already, the default lacks it, or it cannot be
            computed.
    """

    path: str
    kind: Literal["float", "int", "choice"]
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Value, ...] = ()
    condition: str = ""
    default: Value = None
    ratio: bool = False
    reset: OptionalFloat = None

    @property
    def range(self) -> Parameter:
        """Its range as the search had it, without steps and conditions."""
        return Parameter(
            self.path, self.kind, self.low, self.high, log=self.log, choices=self.choices
        )


class TrialRecord(ReportRecord):
    """One set of numbers that was tried.

    Attributes:
        number: In the order of the search.
        params: Path → value; a conditional parameter that does not exist is absent.
        value: Mean of the primary measure over the tuning queries; None = could not be computed.
        origin: ``default``, ``seed``, ``sampler`` or ``frozen``.
    """

    number: int
    params: dict[str, Value]
    value: OptionalFloat
    origin: str


class Gain(Difference):
    """Tuned − default on one set of queries; see ``tune.held_out``.

    Attributes:
        default: Mean of the default.
        tuned: Mean of the tuned system.
        low: Lower end of its interval, which holds together with those of its family; None where
            too few queries differ.
        high: Upper end.
        p: Two-sided, over the family.
        loss_share: The share of draws in which tuned is worse; None where too few queries differ
            for draws.
        sd: Standard error · √Q: N queries of the same grouping have a standard error of sd/√N.
        queries: Q.
        groups: Groups of queries; Q where none are declared.
        design_effect: Variance of the difference by group ÷ by query; None = no spread is known.
    """

    default: float
    tuned: float
    loss_share: OptionalFloat = None
    sd: OptionalFloat
    queries: int
    groups: int
    design_effect: float | None = None

    @property
    def is_drawn(self) -> bool:
        """Whether enough queries differ for draws to decide."""
        return self.loss_share is not None


class Look(ReportRecord):
    """Which look at these held-out queries this is, and what the next one costs.

    Attributes:
        number: j, counted from 1 among the looks that share held-out queries; None = not counted.
        level: The one-sided level of this look.
        power: Its power for a difference that a single look finds with power .8 (normal
            approximation).
        next_number: Number of the next look at other numbers or queries; None = not counted.
        next_level: Its one-sided level.
        next_query_factor: How many times the queries of a single look it needs for power .8.
        is_repeated: Whether the same numbers were looked at on the same queries before.
        file: The ledger; None = not counted.
        note: Why the looks are not counted, or are counted elsewhere; empty = neither.
        line: Line of the ledger that this look is; None = not counted, or of an earlier version.
        digest: Its digest, which the next line of the ledger names.
        lost: A look of the report before this one that the ledger lacks; empty = none is known.
        max_queries: Of the settings; it has no effect.
    """

    number: int | None
    level: float
    power: float
    next_number: int | None = None
    next_level: float | None = None
    next_query_factor: float | None = None
    is_repeated: bool = False
    file: str | None = None
    note: str = ""
    line: int | None = None
    digest: str | None = None
    lost: str = ""
    max_queries: int | None = None


class DataFacts(ReportRecord):
    """The input lists, and what unjudged documents and ties do to the held-out values.

    Attributes:
        runs: The input lists.
        warnings: What speaks against them, and against how the two systems read them.
        judgments: What an unjudged document means; None = not declared.
        queries: Held-out queries.
        unjudged_shares: Share of unjudged documents in the top 10, of the default and the tuned
            system.
        tied: Queries whose value depends on ties in the final list, of both.
        source_tied: Queries whose value depends on ties inside the lists that are read, of both;
            nothing where that is not computed for the measure.
        bounds: What unjudged documents could make of the held-out mean, of both and of the system
            with parameters by class; nothing with complete judgments, and where it is not known.
    """

    runs: tuple[ListInfo, ...]
    warnings: tuple[DataWarning, ...]
    judgments: Literal["pooled", "sparse", "complete"] | None
    queries: int
    unjudged_shares: dict[str, float]
    tied: dict[str, int]
    source_tied: dict[str, int]
    bounds: dict[str, CompletionBounds] = Field(default_factory=dict)


class ClassGain(ReportRecord):
    """The held-out gain of one class of queries.

    Attributes:
        gain: Tuned − default.
        bounds: What unjudged documents could make of the means, by system; nothing with complete
            judgments.
    """

    gain: Gain
    bounds: dict[str, CompletionBounds] = Field(default_factory=dict)


class TypeGain(ClassGain):
    """The held-out gain of one query type.

    Attributes:
        type: The type; None = queries without one.
    """

    type: str | None


class IntentGain(ClassGain):
    """The held-out gain of one intent.

    Attributes:
        intent: The intent; None = queries without one.
    """

    intent: str | None


class PerTypeResult(ReportRecord):
    """Numbers tuned for each query type or intent, against one set of numbers for all.

    Attributes:
        key: ``by_query_type`` or ``by_intent``.
        params: Type or intent → the numbers chosen on its own tuning queries; those with too few
            of them keep the numbers for all, and are not listed.
        config: The resolved system.
        gain: Held out: tuned by class − the default.
        over_global: Held out: tuned by class − tuned for all.
        verdict: What ``over_global`` allows to be said: whether classes are worth it.
        unjudged: What unjudged documents could change in ``over_global``; None = all judgments
            are complete.
    """

    key: Literal["by_query_type", "by_intent"] = "by_query_type"
    params: dict[str, dict[str, Value]]
    config: dict[str, Any]
    gain: Gain
    over_global: Gain
    verdict: TuningVerdict
    unjudged: UnjudgedResult | None = None

    @property
    def field(self) -> str:
        """The field of the query that decides: ``type`` or ``intent``."""
        return CLASS_KEYS[self.key].field


FloorKind: TypeAlias = Literal["system", "source", "missing"]


class FloorRow(MeanDifference):
    """Something untuned against the tuned system.

    Attributes:
        name: A system of the experiment, a source that one of them reads, or the default with
            another ``missing``.
        kind: Which of them.
        mean: Held out.
        difference: This − tuned.
        low: Lower end of its interval, adjusted for all rows; None where there is none.
        high: Upper end.
        p: Adjusted for all rows.
        answer: What is shown of this against the tuned system.
        bounds: How much of its lists is judged, and what the rest could make of the mean; None with
            complete judgments.
    """

    name: str
    kind: FloorKind
    mean: float
    p: float
    answer: Answer
    bounds: CompletionBounds | None = None


class PairedDifference(ReportRecord):
    """A mean paired difference on the held-out queries, with its interval."""

    mean: float
    low: OptionalFloat
    high: OptionalFloat


class RerankerEffort(ReportRecord):
    """Where it is known from what one reranker takes.

    Attributes:
        reranker: The rerank list.
        provider: ``provider/model`` that was asked for it; None = not known.
        cost: Where its price is known from; None = it is not.
        seconds: Where its latency is known from; None = it is not.
        declared_price: Of 1,000 candidates, as declared; None = nothing is.
        declared_seconds: Of a candidate, as declared.
        recorded_price: Of 1,000 candidates, as recorded at the list's own depth; None = nothing is.
        recorded_seconds: Median latency of a query at the list's own depth, as recorded.
        queries: That the record speaks of.
        calls: That it speaks of.
        documents: That it speaks of.
        largest_call: Documents of one call at most; None = no record.
        at_once: Calls under way together at most, while latencies were measured.
    """

    reranker: str
    provider: str | None = None
    cost: Literal["ledger", "declared"] | None = None
    seconds: Literal["ledger", "declared"] | None = None
    declared_price: float | None = None
    declared_seconds: float | None = None
    recorded_price: float | None = None
    recorded_seconds: float | None = None
    queries: int = 0
    calls: int = 0
    documents: int = 0
    largest_call: int | None = None
    at_once: int | None = None


class ParetoPoint(ReportRecord):
    """One trade of quality for effort; on the front if nothing that takes less is as good.

    Attributes:
        roles: ``default`` and ``chosen``, which are shown wherever they stand.
        reranker: The rerank list, several joined by `` + ``; None = no reranker.
        depth: Rerank depth, the greatest where query types differ; 0 = no reranker.
        candidates: Mean candidates reranked a query, over the tuning queries, as below.
        cost: Of 1,000 queries; None = not known.
        seconds: A query, median latency; None = not known.
        slow: The latency that 95 % of such queries stay within; None = not known.
        value: Mean of the primary measure over the tuning queries.
        held_out: The same over the held-out queries.
        over_default: Held out: this − the default.
        over_best: Held out: this − the efficient point of the greatest tuning value.
        params: Its numbers.
        config: The resolved system.
        efficient: Whether it is on the front of the tuning queries.
        bounds: How much of its held-out lists is judged, and what the rest could make of
            ``held_out``; None = all judgments are complete, or the point is not shown.
    """

    roles: tuple[Literal["default", "chosen"], ...] = ()
    reranker: str | None
    depth: int
    candidates: float
    cost: float | None = None
    seconds: float | None = None
    slow: float | None = None
    value: float
    held_out: float
    over_default: PairedDifference
    over_best: PairedDifference
    params: dict[str, Value]
    config: dict[str, Any]
    efficient: bool
    bounds: CompletionBounds | None = None

    @property
    def is_shown(self) -> bool:
        """Whether tables show it."""
        return self.efficient or bool(self.roles)

    @property
    def reranker_and_depth(self) -> tuple[str | None, int]:
        """Its reranker and its depth."""
        return self.reranker, self.depth


class ParetoFront(ReportRecord):
    """Quality against rerank effort.

    Attributes:
        method: How it was looked for; see ``tuning.FrontSearch``.
        evaluations: Systems evaluated for it, beside those of the search.
        axes: What points are compared by beside the measure: ``candidates``, ``cost``, ``seconds``.
        points: By effort; the best found at each depth of each reranker, the default, the choice.
        efforts: Where effort is known from, one a reranker.
        interrupted: Whether the search for it was cut short.
        unjudged: What unjudged documents could change in the held-out difference of the best point
            − the default; None = all judgments are complete, or the best is the default.
        is_contradicted: Whether they contradict that the best point gains over the default.
    """

    method: Literal["tpe", "nsga2", "depths"]
    evaluations: int
    axes: tuple[Literal["candidates", "cost", "seconds"], ...]
    points: tuple[ParetoPoint, ...]
    efforts: tuple[RerankerEffort, ...]
    interrupted: bool = False
    unjudged: UnjudgedResult | None = None
    is_contradicted: bool = False

    @property
    def efficient_points(self) -> tuple[ParetoPoint, ...]:
        """The points on the front, by effort."""
        return tuple(point for point in self.points if point.efficient)

    @property
    def best(self) -> ParetoPoint:
        """The efficient point of the greatest tuning value; of equal ones the cheapest."""
        return max(self.efficient_points, key=lambda point: (point.value, -self.effort(point)))

    @property
    def default_point(self) -> ParetoPoint:
        """The default."""
        return next(point for point in self.points if "default" in point.roles)

    def effort(self, point: ParetoPoint) -> float:
        """What points are sorted by: cost where it is known, else latency, else candidates."""
        return float(getattr(point, self.axes[-1]) or 0.0)

    def cheapest_reaching(self, value: float) -> ParetoPoint:
        """The cheapest efficient point with at least this value on the tuning queries."""
        points = [point for point in self.efficient_points if point.value >= value]
        return min(points, key=lambda point: (self.effort(point), -point.value))

    def point_name(self, point: ParetoPoint) -> str:
        """``depth 20``, with the reranker where there are several."""
        if not point.depth:
            return "no reranker"
        reranker = f" of {point.reranker}" if len(self.efforts) > 1 else ""
        return f"depth {point.depth:,}{reranker}"


class Fold(ReportRecord):
    """What the procedure chose without one fold, and what that was worth on it.

    Attributes:
        params: The chosen numbers.
        difference: Tuned − default on the queries it was chosen on.
        unseen: Tuned − default on the fold.
        queries: Size of the fold.
    """

    params: dict[str, Value]
    difference: float
    unseen: float
    queries: int


class Plateau(ReportRecord):
    """How much the numbers matter.

    Attributes:
        share: Of a uniform sample, within one standard error of the best (paired differences).
        sample: Its size.
    """

    share: float
    sample: int


class Importance(ReportRecord):
    """How much of the difference between good trials and all is due to one parameter.

    Attributes:
        path: The parameter.
        share: Of all parameters' importance; they add up to 1.
    """

    path: str
    share: float


class ThresholdRule(ThresholdPair):
    """A rule on held-out queries: (with, without) a relevant document, by verdict.

    Attributes:
        utility: Mean worth: 1 right, 0 wrong, the credit where it is ambiguous.
    """

    utility: float
    correct: tuple[int, int]
    ambiguous: tuple[int, int]
    incorrect: tuple[int, int]


class CalibrationBin(ReportRecord):
    """Held-out queries of about the same score, and how many have a relevant document."""

    score: float
    share: float
    queries: int


class ThresholdReport(ScoredList):
    """CRAG's thresholds and ``min_score``, fitted on tuning queries and judged held out.

    Attributes:
        credit: What ``ambiguous`` is worth.
        default: The thresholds as they were.
        tuned: Fitted.
        min_score: Fitted as one threshold, without credit for doubt.
        gain: Utility, tuned − default, adjusted for the verdicts of the run.
        verdict: What that allows to be said.
        calibration: By score, lowest first.
    """

    credit: float
    default: ThresholdRule
    tuned: ThresholdRule
    min_score: ThresholdRule
    gain: Gain
    verdict: TuningVerdict
    calibration: tuple[CalibrationBin, ...]


FORMAT: Literal["fusion-bench-tuning"] = "fusion-bench-tuning"
FORMAT_VERSION = 13


class ChosenTrial(ReportRecord):
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


class Recommendation(ReportRecord):
    """What to do after a run: the one that its page, its exit code and its files carry.

    Attributes:
        kind: ``use untuned``: another system of the experiment, a single source, or the default
            with another ``missing``. ``judge first``, ``declare groups``: keep the default until
            that is done.
        name: The system to use.
        sentence: What to do, and why.
        config: The resolved system.
        loss_share: Of a change the share of draws in which it is worse than the default; None where
            too few queries differ for draws.
    """

    kind: Literal["use tuned", "use untuned", "keep default", "judge first", "declare groups"]
    name: str
    sentence: str
    config: dict[str, Any]
    loss_share: OptionalFloat = None


class TunedThreshold(ReportRecord):
    """When the tuned system abstains.

    Attributes:
        false_answers: Share of the unanswerable queries that may be answered.
        chosen: The signal, chosen on tuning queries, with the threshold that held-out ones set;
            None = there is none.
        reason: Why there is none; empty = there is one.
    """

    false_answers: float
    chosen: ChosenSignal | None = None
    reason: str = ""


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
        settings: Sampler, trials, seed, alpha, interval, least gain, folds, …
        parameters: What was tuned.
        default: The resolved default system.
        choice: What was chosen.
        tune: Tuned − default on the queries that it was chosen on: too good by construction.
        nested: The same by nested cross-validation; None = not asked for. It estimates.
        held_out: The same on the held-out queries: this decides.
        other_means: Held-out means of the default and of the tuned system by another measure, which
            decides nothing.
        level: One-sided level of the verdicts; intervals cover 1 − 2 · this.
        verdict_against_default: What that allows to be said of tuned and default; nothing else of
            the experiment counts in it.
        recommendation: What to do, with everything on the held-out table; None = not decided yet.
        needed: Held-out queries that would show the least gain with power .8; None = not known.
        look: Which look at these held-out queries it is; None = the default was chosen, so that
            nothing was looked at.
        unjudged: What unjudged documents could change in the held-out difference; None = all
            judgments are complete.
        floor: Untuned systems and single sources on the held-out queries, the best first.
        first_group: Of these, the default and the tuned system those that are not shown to be worse
            than any other, over all pairs; empty where nothing else was evaluated.
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
        abstain: When the tuned system abstains; None = the system states no share of false answers.
        per_type: Tuned by query type or intent; None = not asked for, or none has queries enough.
        trials: Everything that was tried.
        held_out_queries: Ids, …
        held_out_values: … and (default, tuned) of each.
        list_trials: Values are means over so many trials of the lists; 1 = each has one file.
        interrupted: Whether the search was cut short.
        provenance: Where the numbers come from.
        lint: What lint finds in the default and the tuned system, see ``docs/reference/lint.md``.
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
    settings: dict[str, Any]
    parameters: tuple[ParameterInfo, ...]
    default: dict[str, Any]
    choice: ChosenTrial
    tune: Gain
    nested: Gain | None
    held_out: Gain
    other_means: dict[str, tuple[float, float]] = Field(default_factory=dict)
    level: float = 0.025
    verdict_against_default: TuningVerdict
    recommendation: Recommendation | None = None
    needed: SampleSize | None
    look: Look | None = None
    unjudged: UnjudgedResult | None = None
    floor: tuple[FloorRow, ...] = ()
    first_group: tuple[str, ...] = ()
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
    abstain: TunedThreshold | None = None
    per_type: PerTypeResult | None = None
    trials: tuple[TrialRecord, ...]
    held_out_queries: tuple[str, ...]
    held_out_values: tuple[tuple[float, float], ...]
    list_trials: int = 1
    interrupted: bool = False
    provenance: Provenance
    lint: tuple[LintFinding, ...] = ()

    @property
    def tuned_config(self) -> dict[str, Any]:
        """The tuned system, with its threshold if one is promised."""
        config, tuned = self.choice.config, self.abstain
        if tuned is None or tuned.chosen is None:
            return config
        return {**config, "abstain": tuned.chosen.to_abstain(tuned.false_answers).model_dump()}

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
        verdict = name_verdict(self.verdict)
        return f"TuningReport({self.name!r}, {names}, {self.measure}: {verdict}, {trials})"

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
    def completed_trials(self) -> tuple[TrialRecord, ...]:
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
    def verdict(self) -> TuningVerdict:
        """:attr:`verdict_against_default`."""
        return self.verdict_against_default

    @property
    def advice(self) -> Recommendation:
        """The recommendation of a finished record."""
        if self.recommendation is None:
            raise ValueError("recommendation: not decided yet")
        return self.recommendation

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
