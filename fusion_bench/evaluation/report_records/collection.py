"""The results on one dataset."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from pydantic import Field

from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.query_groups.find_groups import Grouping
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.report_records.judge_info import JudgeInfo
from fusion_bench.evaluation.report_records.list_info import ListInfo
from fusion_bench.evaluation.report_records.near_duplicates import NearDuplicates
from fusion_bench.evaluation.report_records.record import ReportRecord
from fusion_bench.evaluation.report_records.results.comparison import ComparisonResult
from fusion_bench.evaluation.report_records.results.crag import CragResult
from fusion_bench.evaluation.report_records.results.fusion import FusionResult
from fusion_bench.evaluation.report_records.results.system import SystemResult
from fusion_bench.stats.answers import BETTER
from fusion_bench.stats.unjudged_rule import CONDITION, JudgmentKind, name_kind
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns, TableView


class Collection(TableView, ReportRecord):
    """What was found on one dataset.

    Attributes:
        name: The dataset.
        version: Its version.
        fingerprint: SHA-256 over the contents that were used.
        digests: SHA-256 of each part.
        split: Which split was evaluated; None = all judged queries.
        query_type: Which query type; None = all.
        where: Field of the queries → the values that they have; empty = all.
        tuning_split: Where the best single source was chosen; None = on the evaluated queries.
        judgments: What an unjudged document means here; None = not declared.
        binary_relevance: Grade from which binary measures count.
        measures: Measure names as the dataset resolves them; the first is the primary one.
        baseline: The system compared with.
        queries: The Q evaluated query ids.
        types: Their types.
        slices: Other fields by which the page breaks results down: their values by query.
        groups: Their groups.
        grouping: How the declared groups were joined.
        has_irrelevant_judgments: Whether any document of these queries is judged not relevant;
            where none is, no difference corrects for unjudged documents.
        grades: The different grades of their judged documents, ascending; empty = not known.
        queries_without_relevant: Queries without a relevant document; they score 0.
        runs: The input lists.
        systems: The rows, floor and ceiling rows last.
        comparisons: By measure, in the order of the systems.
        first_group: The systems that are not shown to be worse than any other, over all pairs.
        fusion: Whether fusing pays; None = there is no fusion, or no source alone.
        synthetic_queries: Queries that a model wrote; where there are any, all are.
        ignored_queries: Queries of the queries file that lists answer and nobody judged.
        near_duplicates: Queries that depend on each other though no group says so; None = few or
            none, or not searched.
        crag: CRAG's verdicts on each list with absolute scores; empty = not asked for.
        judge: The machine judge whose grades these are; None = people gave them.
        first_trial: What is of trial 1 alone, a sentence each; empty where each list has one trial.
    """

    name: str
    version: str
    fingerprint: str
    digests: dict[str, str]
    split: str | None
    query_type: str | None
    where: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    tuning_split: str | None
    judgments: Literal["pooled", "sparse", "complete"] | None
    binary_relevance: int
    measures: tuple[str, ...]
    baseline: str
    queries: tuple[str, ...]
    types: tuple[str | None, ...]
    slices: dict[str, tuple[str | None, ...]] = Field(default_factory=dict)
    groups: tuple[str, ...]
    grouping: Grouping = "identical"
    has_irrelevant_judgments: bool = True
    grades: tuple[int, ...] = ()
    queries_without_relevant: int
    runs: tuple[ListInfo, ...]
    systems: tuple[SystemResult, ...]
    comparisons: tuple[ComparisonResult, ...] = ()
    first_group: tuple[str, ...] = ()
    fusion: FusionResult | None = None
    near_duplicates: NearDuplicates | None = None
    synthetic_queries: int = 0
    ignored_queries: int = 0
    crag: tuple[CragResult, ...] = ()
    judge: JudgeInfo | None = None
    first_trial: tuple[str, ...] = ()

    def slice_values(self, field: str) -> tuple[str | None, ...]:
        """(Q,): the value of a sliced field of each query; None = absent."""
        return self.types if field == "type" else self.slices[field]

    def system_values(self) -> dict[str, FloatArray]:
        """By system, (M, Q): its values; NaN where one is missing.

        Raises:
            ConfigError: A system lacks a measure.
        """
        values = {}
        for row in self.systems:
            if row.kind != "system":
                continue
            for name in self.measures:
                if name not in row.measures:
                    raise ConfigError(
                        f"{self.name}: system {row.name!r} has no measure {name!r}: run the "
                        "experiment again"
                    )
            rows = [row.measures[name].values for name in self.measures]
            values[row.name] = np.array(rows, np.float64)
        return values

    def trial_values(self) -> dict[str, FloatArray]:
        """By system of several trials, (T, M, Q): the values of each."""
        return {
            row.name: np.array(
                [row.measures[name].trials for name in self.measures], np.float64
            ).swapaxes(0, 1)
            for row in self.systems
            if row.kind == "system" and row.trials is not None
        }

    @property
    def trial_lists(self) -> dict[str, frozenset[str]]:
        """By system of several trials the lists that differ between these."""
        rows = self.competitors.items()
        return {name: frozenset(row.trials.lists) for name, row in rows if row.trials is not None}

    @property
    def judgment_kind(self) -> JudgmentKind:
        """What the judgments say of unjudged documents."""
        return name_kind(self.judgments, has_irrelevant=self.has_irrelevant_judgments)

    @property
    def condition(self) -> str:
        """What every answer needs, to be put behind it; empty = nothing."""
        return f" {CONDITION}" if self.judgment_kind == "undeclared" else ""

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
    def ranked_comparisons(self) -> tuple[ComparisonResult, ...]:
        """The comparisons on the primary measure, of the best system first."""
        pairs = (self.comparison(row.name, self.primary_measure) for row in self.ranked_systems)
        return tuple(comparison for comparison in pairs if comparison is not None)

    @property
    def best_improvement(self) -> ComparisonResult | None:
        """Of the systems shown to be better than the baseline, the one with the highest mean."""
        return next((item for item in self.ranked_comparisons if item.answer in BETTER), None)

    @property
    def best_system(self) -> str:
        """The name of that system; the baseline where none is shown to be better."""
        better = self.best_improvement
        return self.baseline if better is None else better.candidate

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
