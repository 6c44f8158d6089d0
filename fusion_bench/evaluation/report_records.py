"""What a report holds of one collection: its systems, comparisons, repeats, verdicts of CRAG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from pydantic import Field

from fusion_bench.checks.records import JudgeInfo, ListInfo, NearDuplicates, Obstacle
from fusion_bench.config.json_records import OptionalFloat, ReportRecord, compute_once
from fusion_bench.data.query_groups import Grouping
from fusion_bench.experiment.settings import Verdict
from fusion_bench.measures._base import is_bounded
from fusion_bench.stats.comparison import MeanDifference, SystemDifference
from fusion_bench.stats.comparison_family import FusionAnswer
from fusion_bench.stats.thresholds import Share
from fusion_bench.stats.unjudged import (
    CONDITION,
    CompletionBounds,
    JudgmentKind,
    UnjudgedEvidence,
    UnjudgedResult,
    name_kind,
)
from fusion_bench.stats.values import MeasuredValues, ValueTable
from fusion_bench.util.formatting import Columns, TableView, format_difference, pluralize


class RepeatsResult(ReportRecord):
    """The trials of one system, on the primary measure.

    Attributes:
        lists: The lists that differ between the trials: ``runs/NAME``, ``rerank/NAME``.
        means: The mean over queries of each trial.
        sd: Sample standard deviation of these means.
        query_share: Of the variance of one value, the part by which queries differ; the three
            shares sum to 1, or are 0 where nothing varies. None with one query.
        trial_share: The part by which trials differ on all queries together.
        residual_share: The part by which trials differ on one query.
        disagreeing_pair: Queries on which the first two trials have different values.
        disagreeing: Queries on which any two have.
    """

    lists: tuple[str, ...]
    means: tuple[float, ...]
    sd: float
    query_share: OptionalFloat
    trial_share: OptionalFloat
    residual_share: OptionalFloat
    disagreeing_pair: int
    disagreeing: int


class TieResult(ReportRecord):
    """What the order of ties in the final lists could make of one mean.

    Attributes:
        affected_queries: Queries whose value depends on it.
        minimum: Mean of the least values.
        maximum: Mean of the greatest values.
        expected: Mean of the expected values; None where it is not known.
    """

    affected_queries: int
    minimum: OptionalFloat
    maximum: OptionalFloat
    expected: OptionalFloat


class SourceTieResult(TieResult):
    """What the order of equal scores inside the lists that a system reads could make of one mean.

    Attributes:
        settlements: The range is that of so many random orders, and of the given one; None = it
            is exact, over all orders.
    """

    settlements: int | None = None


class MeasureResult(ReportRecord):
    """One system on one measure.

    Attributes:
        mean: Over all judged queries.
        low: Lower end of its interval; None where nothing tells the spread.
        high: Upper end.
        values: By query, in the collection's order; of several trials the means over these.
        ties: Ties in the final lists; None for rows that are not a ranking of their own.
        source_ties: Ties inside the lists that the system reads; None for such rows, and where
            it was not computed.
        trials: The values of each trial, as ``values``; empty = there is one.
        bounds: How much of its lists is judged, and what the rest could make of the mean; None
            with complete judgments, and for rows that are not a ranking of their own.
    """

    mean: OptionalFloat
    low: OptionalFloat
    high: OptionalFloat
    values: tuple[float | None, ...]
    ties: TieResult | None = None
    source_ties: SourceTieResult | None = None
    trials: tuple[tuple[float | None, ...], ...] = ()
    bounds: CompletionBounds | None = None


class SliceBounds(ReportRecord):
    """What unjudged documents could make of a system's mean over one slice of the queries.

    Attributes:
        field: The sliced field, such as ``type``.
        value: Its value; None = queries without one.
        bounds: Over these queries.
    """

    field: str
    value: str | None
    bounds: CompletionBounds


#: Share of the answerable queries that may have one value of a signal without a warning.
MOST_AT_ONE: Final = 0.10


class AbstainResult(ReportRecord):
    """The queries that a system with a threshold answers.

    Attributes:
        signal: The signal that decides.
        above: The threshold.
        answered: Share of the queries with a relevant document that are answered.
        false_answers: Share of the queries known to have none that are answered.
        is_calibrated_here: Whether some of these queries set the threshold.
        values: How many different values the signal has on these queries.
        answerable_at_one: Share of the answerable queries that have its most frequent value.
        unanswerable_at_one: Share of the unanswerable ones that have this very value.
    """

    signal: str
    above: float
    answered: Share
    false_answers: Share
    is_calibrated_here: bool
    values: int
    answerable_at_one: OptionalFloat
    unanswerable_at_one: OptionalFloat

    @property
    def is_tied(self) -> bool:
        """Whether a threshold on the signal decides many answerable queries all at once."""
        return (self.answerable_at_one or 0.0) > MOST_AT_ONE


class SystemResult(ReportRecord):
    """One row of the table.

    Attributes:
        name: Its name.
        kind: ``system`` was asked for; ``floor`` and ``ceiling`` rows give the scale.
        note: What a floor or ceiling row is, such as which source was chosen and on what.
        config: The resolved system; None for floor and ceiling rows.
        measures: By measure name.
        judged_only: The primary measure over judged documents only, by query; empty for floor
            and ceiling rows.
        filled: The primary measure by query, where an unjudged document has the mean gain of the
            system's judged documents at its rank; empty likewise, and where the measure has no
            formula for it; None = no list has a judged document.
        unjudged_share: Mean share of unjudged documents in the top 10.
        slice_bounds: What the bounds of the primary measure are on each slice of the queries; empty
            with complete judgments, and for floor and ceiling rows.
        returned_documents: Documents ranked, over all queries; of several trials the mean.
        trials: How far its trials lie apart; None = there is one.
        abstain: Which queries it answers, on the first trial; None = it has no threshold.
    """

    name: str
    kind: Literal["system", "floor", "ceiling"]
    note: str = ""
    config: dict[str, Any] | None = None
    measures: dict[str, MeasureResult]
    judged_only: tuple[float | None, ...] = ()
    filled: tuple[float | None, ...] = ()
    unjudged_share: OptionalFloat = None
    slice_bounds: tuple[SliceBounds, ...] = ()
    returned_documents: int = 0
    trials: RepeatsResult | None = None
    abstain: AbstainResult | None = None


class ComparisonResult(SystemDifference):
    """One system against the baseline on one measure, as a report has it.

    Attributes:
        unjudged: What unjudged documents could change in the difference (primary measure); None
            with complete judgments.
    """

    unjudged: UnjudgedResult | None = None

    def _summary(self) -> str:
        difference = format_difference(self.difference, self.low, self.high)
        counts = f"{self.wins}/{self.ties}/{self.losses}"
        answer = "" if self.answer is None else f"; {self.answer}"
        return (
            f"ComparisonResult({self.candidate} - {self.baseline}, {self.measure}: {difference}, "
            f"p {self.p:.3g}, {counts}{answer})"
        )


class FusionResult(FusionAnswer):
    """Every fusion against every single source on the primary measure, as one family.

    Attributes:
        fusion_mean: Of that fusion.
        source_mean: Of that source.
        fusions: How many fusions were compared.
        sources: … with how many sources.
        contradicted: Under ``unjudged decide`` the pair, fusion and source, whose difference is
            contradicted; empty otherwise.
        unjudged: What unjudged documents could change in that pair; None otherwise.
        is_reranked: All fusions blend in a reranker; where some do not, only those are compared.
    """

    fusion_mean: OptionalFloat
    source_mean: OptionalFloat
    fusions: int
    sources: int
    is_reranked: bool
    contradicted: tuple[str, ...] = ()
    unjudged: UnjudgedResult | None = None


class VerdictCount(ReportRecord):
    """The queries that have one verdict.

    Attributes:
        queries: How many.
        share: Of all queries.
        relevant: With a relevant document in the top of the list.
        precision: Share for which the verdict is right: with a relevant document for ``correct``,
            without one for ``incorrect``; None for ``ambiguous``, and without queries.
        low: Lower end of its 95 % interval (Clopper–Pearson; queries count singly).
        high: Upper end.
    """

    queries: int
    share: float
    relevant: int
    precision: OptionalFloat = None
    low: OptionalFloat = None
    high: OptionalFloat = None


class RefinedResult(MeanDifference):
    """The queries that were searched again, with the refined query.

    Attributes:
        queries: Their ids.
        measure: The primary measure.
        before: Its mean over them, of the lists of the original query.
        after: Its mean over them, of the lists of the refined query.
        mean_before: Mean over all queries of the collection, before.
        mean_after: The same, after.
        verdicts: Of the lists of the refined query.
        relevant_before: Lists with a relevant document in the top, before.
        relevant_after: The same, after.
    """

    queries: tuple[str, ...]
    measure: str
    before: float
    after: float
    mean_before: float
    mean_after: float
    verdicts: tuple[Verdict, ...]
    relevant_before: int
    relevant_after: int


class RankedDocument(ReportRecord):
    """A judged document of a query, and where a system ranks it.

    Attributes:
        query: Id of the query.
        document: Id of the document.
        grade: As judged.
        rank: Final rank; null = not returned.
    """

    query: str
    document: str
    grade: int
    rank: int | None


class ScoredList(ReportRecord):
    """A list of every query whose best scores tell whether it can be answered from.

    Attributes:
        name: The system, or the rerank list.
        kind: ``system`` = its final lists; ``list`` = the rerank list in its own order.
        reranker: The rerank list whose scores count.
        top: So many documents of a list count.
    """

    name: str
    kind: Literal["system", "list"]
    reranker: str
    top: int

    @property
    def title(self) -> str:
        """``mine (ce)`` of a system, ``rerank list ce`` of a list."""
        if self.kind == "list":
            return f"rerank list {self.name}"
        return f"{self.name} ({self.reranker})"


class ThresholdPair(ReportRecord):
    """Where a verdict changes.

    Attributes:
        upper: At or above it a best score is ``correct``.
        lower: At or below it a best score is ``incorrect``, between them ``ambiguous``.
    """

    upper: float
    lower: float


class CragResult(ThresholdPair, ScoredList):
    """The verdicts on the lists of all queries.

    Attributes:
        grade: From which a document is relevant.
        scores: Best score by query, in the collection's order; None = nothing was scored.
        verdicts: By query, in the collection's order.
        correct: The queries of this verdict.
        ambiguous: Likewise.
        incorrect: Likewise.
        needs_web_search: Queries that are not ``correct``.
        refined: The queries that were searched again; None = the dataset has no refined lists for
            any of them.
    """

    grade: int
    scores: tuple[OptionalFloat, ...]
    verdicts: tuple[Verdict, ...]
    correct: VerdictCount
    ambiguous: VerdictCount
    incorrect: VerdictCount
    needs_web_search: int
    refined: RefinedResult | None = None


def format_scope(
    split: str | None,
    query_type: str | None,
    where: Mapping[str, Sequence[str]],
    format_name: Callable[[str], str] = str,
) -> str:
    """``, split test, type local, language ja``; empty for all judged queries.

    Args:
        split: None = all.
        query_type: None = all.
        where: Field of the queries → the values that they have.
        format_name: How a name is written.
    """
    filters: dict[str, Sequence[str]] = {} if split is None else {"split": (split,)}
    filters |= {} if query_type is None else {"type": (query_type,)}
    parts = (
        f", {format_name(field)} {' or '.join(map(format_name, values))}"
        for field, values in {**filters, **where}.items()
    )
    return "".join(parts)


class CollectionFacts(ReportRecord):
    """Which queries of a dataset were looked at, and what is known of its judge and lists.

    Attributes:
        name: The dataset.
        version: Its version.
        fingerprint: SHA-256 over the contents that were used.
        split: Which split was evaluated; None = all judged queries.
        query_type: Which query type; None = all.
        where: Field of the queries → the values that they have; empty = all.
        binary_relevance: Grade from which a document is relevant to binary measures.
        baseline: The system that the others are compared with.
        runs: The input lists, and what was noticed about each.
        judge: The machine judge whose grades these are; None = people gave them.
        judgment_notes: What was read of the judgments in another way than may be expected.
    """

    name: str
    version: str
    fingerprint: str
    split: str | None
    query_type: str | None
    where: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    binary_relevance: int
    baseline: str
    runs: tuple[ListInfo, ...]
    judge: JudgeInfo | None = None
    judgment_notes: tuple[str, ...] = ()


class Collection(TableView, CollectionFacts):
    """What was found on one dataset.

    Attributes:
        digests: SHA-256 of each part.
        tuning_split: Where the best single source was chosen; None = on the evaluated queries.
        judgments: What an unjudged document means here; None = not declared.
        measures: Measure names as the dataset resolves them; the first is the primary one.
        queries: The Q evaluated query ids.
        types: Their types.
        slices: Other fields by which the page breaks results down: their values by query.
        groups: Their groups.
        grouping: How the declared groups were joined.
        has_irrelevant_judgments: Whether any document of these queries is judged not relevant;
            where none is, no difference corrects for unjudged documents.
        grades: The different grades of their judged documents, ascending; empty = not known.
        queries_without_relevant: Queries without a relevant document; they score 0.
        means_of_others: System → its mean on the primary measure over the other queries; empty
            where every query has a relevant document, or none has.
        obstacles: What stops an answer, though it was allowed to go on: then the answer is to
            check the data.
        systems: The rows, floor and ceiling rows last.
        comparisons: By measure, in the order of the systems.
        first_group: The systems that are not shown to be worse than any other, over all pairs.
        fusion: Whether fusing pays; None = there is no fusion, or no source alone.
        synthetic_queries: Queries that a model wrote; where there are any, all are.
        ignored_queries: Queries of the queries file that lists answer and nobody judged.
        near_duplicates: Queries that depend on each other though no group says so; None = few or
            none, or not searched.
        crag: CRAG's verdicts on each list with absolute scores; empty = not asked for.
        first_trial: What is of trial 1 alone, a sentence each; empty where each list has one trial.
    """

    digests: dict[str, str]
    tuning_split: str | None
    judgments: Literal["pooled", "sparse", "complete"] | None
    measures: tuple[str, ...]
    queries: tuple[str, ...]
    types: tuple[str | None, ...]
    slices: dict[str, tuple[str | None, ...]] = Field(default_factory=dict)
    groups: tuple[str, ...]
    grouping: Grouping = "identical"
    has_irrelevant_judgments: bool = True
    grades: tuple[int, ...] = ()
    queries_without_relevant: int
    means_of_others: dict[str, OptionalFloat] = Field(default_factory=dict)
    obstacles: tuple[Obstacle, ...] = ()
    systems: tuple[SystemResult, ...]
    comparisons: tuple[ComparisonResult, ...] = ()
    first_group: tuple[str, ...] = ()
    fusion: FusionResult | None = None
    near_duplicates: NearDuplicates | None = None
    synthetic_queries: int = 0
    ignored_queries: int = 0
    crag: tuple[CragResult, ...] = ()
    first_trial: tuple[str, ...] = ()

    def slice_values(self, field: str) -> tuple[str | None, ...]:
        """(Q,): the value of a sliced field of each query; None = absent."""
        return self.types if field == "type" else self.slices[field]

    @property
    @compute_once
    def table(self) -> ValueTable:
        """The values of the systems, NaN where one is missing."""
        return ValueTable(
            {name: _read_values(self, row) for name, row in self.competitors.items()},
            baseline=self.baseline,
            measures=self.measures,
            keys=self.groups,
            bounded=tuple(filter(is_bounded, self.measures)),
            kind=self.judgment_kind,
        )

    @property
    def judgment_kind(self) -> JudgmentKind:
        """What the judgments say of unjudged documents."""
        return name_kind(self.judgments, has_irrelevant=self.has_irrelevant_judgments)

    @property
    def condition(self) -> str:
        """What every answer needs, to be put behind it; empty = nothing."""
        return f" {CONDITION}" if self.judgment_kind == "undeclared" else ""

    @property
    def shown_first_group(self) -> tuple[str, ...]:
        """The first group of three systems or more; of two, their comparison says all."""
        return self.first_group if len(self.competitors) > 2 else ()

    @property
    def primary_measure(self) -> str:
        """The measure that decides."""
        return self.measures[0]

    @property
    def competitors(self) -> dict[str, SystemResult]:
        """The systems of the experiment by name, without floor and ceiling."""
        return {row.name: row for row in self.systems if row.kind == "system"}

    @property
    def ranked_systems(self) -> tuple[SystemResult, ...]:
        """The systems by primary mean, best first; equals in the experiment's order."""

        def sort_key(row: SystemResult) -> float:
            mean = row.measures[self.primary_measure].mean
            return -math.inf if mean is None else mean

        systems = (row for row in self.systems if row.kind == "system")
        return tuple(sorted(systems, key=sort_key, reverse=True))

    @property
    def repeated_systems(self) -> list[tuple[SystemResult, RepeatsResult]]:
        """The systems of several repeats, the best first."""
        rows = ((row, row.trials) for row in self.ranked_systems)
        return [(row, repeats) for row, repeats in rows if repeats is not None]

    @property
    def ranked_comparisons(self) -> tuple[ComparisonResult, ...]:
        """The comparisons on the primary measure, of the best system first."""
        pairs = (self.comparison(row.name, self.primary_measure) for row in self.ranked_systems)
        return tuple(comparison for comparison in pairs if comparison is not None)

    @property
    def reference_rows(self) -> tuple[SystemResult, ...]:
        """Floor and ceiling rows."""
        return tuple(row for row in self.systems if row.kind != "system")

    def _summary(self) -> str:
        systems = pluralize(len(self.ranked_systems), "system")
        queries = pluralize(len(self.queries), "query")
        return f"Collection({self.name!r}, {systems}, {queries}, {', '.join(self.measures)})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a system, the best first, with the mean of each measure."""
        rows = self.ranked_systems[:limit]
        return {
            "system": [row.name for row in rows],
            **{name: [row.measures[name].mean for row in rows] for name in self.measures},
        }

    def system(self, name: str) -> SystemResult:
        """The row of that name."""
        return next(row for row in self.systems if row.name == name)

    def comparison(self, candidate: str, measure: str) -> ComparisonResult | None:
        """That system against the baseline; None for the baseline and the bounds."""
        matches = (c for c in self.comparisons if (c.candidate, c.measure) == (candidate, measure))
        return next(matches, None)


def _read_values(collection: Collection, row: SystemResult) -> dict[str, MeasuredValues]:
    """The values of a system by measure; on the primary one what unjudged documents could change.

    A list of several files has their digests in its name: in another report they may differ.
    """
    files, found = sorted(collection.digests.items()), {}
    lists = frozenset(
        f"{name} {[file for file in files if file[0].partition(' trial ')[0] == name]}"
        for name in (row.trials.lists if row.trials else ())
    )
    filled = np.array(row.filled, np.float64) if row.filled else None
    judged_only = np.array(row.judged_only, np.float64)
    # A report keeps the mean share alone.
    share = np.array([row.unjudged_share or 0.0])
    evidence = UnjudgedEvidence(share, judged_only, filled) if row.judged_only else None
    for measure in filter(row.measures.__contains__, collection.measures):
        result = row.measures[measure]
        found[measure] = MeasuredValues(
            np.array(result.values, np.float64),
            np.array(result.trials, np.float64) if result.trials else None,
            lists,
            evidence if measure == collection.primary_measure else None,
        )
    return found
