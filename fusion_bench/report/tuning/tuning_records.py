"""The result file of a tuning run: what was tried, what was chosen, and what it is worth.

Everything shown to people is rendered from this record.

Format history:
    1   first version
    2   ``front`` holds the points of all rerankers, their intervals, and where effort is known from
    3   ``parameters`` say of which weights the ratio counts, and what is lost without each one
    4   no line search; the rule ``sceptical`` is ``shrinkage``, ``salt`` is ``split_seed``
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, ValidationError

from fusion_bench.config.parameters import Parameter
from fusion_bench.errors import DataError
from fusion_bench.evaluation.report_records import OptionalFloat, Provenance, ReportRecord

__all__ = [
    "FORMAT_VERSION",
    "CalibrationBin",
    "Choice",
    "Difference",
    "Fold",
    "Front",
    "FrontPoint",
    "Gain",
    "Importance",
    "ParameterInfo",
    "Plateau",
    "RerankerEffort",
    "ThresholdReport",
    "ThresholdRule",
    "Trial",
    "TuningReport",
    "TypeGain",
    "Typed",
    "Value",
    "read_tuning",
]

FORMAT: Literal["fusion-bench-tuning"] = "fusion-bench-tuning"
FORMAT_VERSION = 4

#: What a parameter may be set to.
Value: TypeAlias = bool | int | float | str | None


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


class Trial(ReportRecord):
    """One set of numbers that was tried.

    Attributes:
        number: In the order of the search.
        params: Path → value; a conditional parameter that does not exist is absent.
        value: Mean of the primary measure over the tuning queries; None = could not be computed.
        origin: ``default``, ``seed`` or ``sampler``.
    """

    number: int
    params: dict[str, Value]
    value: OptionalFloat
    origin: str


class Gain(ReportRecord):
    """Tuned − default on one set of queries; see ``tune.verdict.Gain``.

    Attributes:
        default: Mean of the default.
        tuned: Mean of the tuned system.
    """

    default: float
    tuned: float
    difference: float
    low: OptionalFloat
    high: OptionalFloat
    p: float
    sd: OptionalFloat
    wins: int
    ties: int
    losses: int
    queries: int
    groups: int


class TypeGain(ReportRecord):
    """The held-out gain of one query type; None = queries without a type."""

    type: str | None
    gain: Gain


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


class Difference(ReportRecord):
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


class FrontPoint(ReportRecord):
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
    over_default: Difference
    over_best: Difference
    params: dict[str, Value]
    config: dict[str, Any]
    efficient: bool

    @property
    def place(self) -> tuple[str | None, int]:
        """Its reranker and its depth."""
        return self.reranker, self.depth


class Front(ReportRecord):
    """Quality against rerank effort.

    Attributes:
        method: How it was looked for; see ``tuning.FrontSearch``.
        evaluations: Systems evaluated for it, beside those of the search.
        axes: What points are compared by beside the measure: ``candidates``, ``cost``, ``seconds``.
        points: By effort; the best found at each depth of each reranker, the default, the choice.
        efforts: Where effort is known from, one a reranker.
        interrupted: Whether the search for it was cut short.
    """

    method: Literal["tpe", "nsga2", "depths"]
    evaluations: int
    axes: tuple[Literal["candidates", "cost", "seconds"], ...]
    points: tuple[FrontPoint, ...]
    efforts: tuple[RerankerEffort, ...]
    interrupted: bool = False

    @property
    def efficient(self) -> tuple[FrontPoint, ...]:
        """The points on the front, by effort."""
        return tuple(point for point in self.points if point.efficient)


class ThresholdRule(ReportRecord):
    """A rule on held-out queries: (with, without) a relevant document, by verdict.

    Attributes:
        upper: At or above it a query is called correct.
        lower: Below it a query is called incorrect; between them ambiguous.
        utility: Mean worth: 1 right, 0 wrong, the credit where it is ambiguous.
    """

    upper: float
    lower: float
    utility: float
    correct: tuple[int, int]
    ambiguous: tuple[int, int]
    incorrect: tuple[int, int]


class CalibrationBin(ReportRecord):
    """Held-out queries of about the same score, and how many have a relevant document."""

    score: float
    share: float
    queries: int


class ThresholdReport(ReportRecord):
    """CRAG's thresholds and ``min_score``, fitted on tuning queries and judged held out.

    Attributes:
        top: So many documents of the list count.
        credit: What ``ambiguous`` is worth.
        default: The thresholds as they were.
        tuned: Fitted.
        min_score: Fitted as one threshold, without credit for doubt.
        gain: Utility, tuned − default.
        verdict: What that allows to be said.
        calibration: By score, lowest first.
    """

    top: int
    credit: float
    default: ThresholdRule
    tuned: ThresholdRule
    min_score: ThresholdRule
    gain: Gain
    verdict: Literal["ship", "worse", "keep", "too few queries"]
    calibration: tuple[CalibrationBin, ...]


class Typed(ReportRecord):
    """Numbers tuned for each query type, against one set of numbers for all.

    Attributes:
        params: Type → the numbers chosen on its own tuning queries; types with too few of them
            keep the numbers for all, and are not listed.
        config: The resolved system.
        gain: Held out: tuned by type − the default.
        over_global: Held out: tuned by type − tuned for all.
        verdict: What ``over_global`` allows to be said: whether types are worth it.
    """

    params: dict[str, dict[str, Value]]
    config: dict[str, Any]
    gain: Gain
    over_global: Gain
    verdict: Literal["ship", "worse", "keep", "too few queries"]


class TuningReport(ReportRecord):
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
        verdict: What that allows to be said.
        needed: Held-out queries that would show the least gain with power .8; None = not known.
        judged_only: Held-out difference over judged documents only; None = not measured.
        folds: Nested cross-validation, fold by fold.
        plateau: How much the numbers matter; None = not sampled.
        importances: Most important first; empty where too few trials tell.
        by_type: Held-out gain by query type, where there are several.
        front: Quality against rerank effort; None without a reranker, or not asked for.
        thresholds: CRAG's thresholds; None = not asked for.
        typed: Tuned by query type; None = not asked for, or no type has queries enough.
        trials: Everything that was tried.
        held_out_queries: Ids, …
        held_out_values: … and (default, tuned) of each.
        interrupted: Whether the search was cut short.
        provenance: Where the numbers come from.
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
    choice: Choice
    tune: Gain
    nested: Gain | None
    held_out: Gain
    verdict: Literal["ship", "worse", "keep", "too few queries"]
    needed: int | None
    judged_only: OptionalFloat = None
    folds: tuple[Fold, ...] = ()
    plateau: Plateau | None = None
    importances: tuple[Importance, ...] = ()
    by_type: tuple[TypeGain, ...] = ()
    front: Front | None = None
    thresholds: ThresholdReport | None = None
    typed: Typed | None = None
    trials: tuple[Trial, ...]
    held_out_queries: tuple[str, ...]
    held_out_values: tuple[tuple[float, float], ...]
    interrupted: bool = False
    provenance: Provenance

    @property
    def done(self) -> tuple[Trial, ...]:
        """The trials that could be computed."""
        return tuple(trial for trial in self.trials if trial.value is not None)

    @property
    def shrinkage(self) -> float | None:
        """Share of the tuning gain that the held-out queries did not confirm.

        None where there was no gain to lose.
        """
        if not self.tune.difference > 0:
            return None
        return 1 - self.held_out.difference / self.tune.difference

    @property
    def alpha(self) -> float:
        """Level of intervals and tests."""
        return float(self.settings.get("alpha", 0.05))

    @property
    def min_gain(self) -> float:
        """A smaller gain is not worth a change."""
        return float(self.settings.get("min_gain", 0.005))


def read_tuning(path: Path) -> TuningReport:
    """Read a ``tuning.json``.

    Raises:
        DataError: No such file, not such a record, or a format this version does not know.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a JSON record of a tuning run: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise DataError(f"{path}: not a tuning run of fusion-bench (no 'format': '{FORMAT}')")
    if data.get("format_version") != FORMAT_VERSION:
        raise DataError(
            f"{path}: format version {data.get('format_version')!r}, and this version of "
            f"fusion-bench reads {FORMAT_VERSION}: run the tuning again"
        )
    try:
        return TuningReport.model_validate_json(json.dumps(data))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise DataError(f"{path}: {place}: {first['msg']}") from None
