"""The result file: what a run found, query by query, and where it came from.

Everything shown to people is rendered from this record.

Format history:
    1   first version
    2   keys renamed, among them unjudged_share, unmatched_queries, queries_without_relevant
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from fusion_bench.config.json_records import read_stored
from fusion_bench.util.table_view import Columns, TableView

FORMAT: Literal["fusion-bench-report"] = "fusion-bench-report"
FORMAT_VERSION = 2


def none_if_nan(value: float | None) -> float | None:
    """The number; None for NaN, which JSON has not."""
    return None if value is None or math.isnan(value) else value


#: A number that may be missing: null in JSON, None here.
OptionalFloat = Annotated[float | None, AfterValidator(none_if_nan)]


class ReportRecord(BaseModel):
    """Frozen; a key it does not know means another format, hence an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class TieResult(ReportRecord):
    """What the order of ties could make of one mean.

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


class MeasureResult(ReportRecord):
    """One system on one measure.

    Attributes:
        mean: Over all judged queries.
        low: Lower end of its interval; None where nothing tells the spread.
        high: Upper end.
        values: By query, in the collection's order.
        ties: Tie sensitivity; None for rows that are not a ranking of their own.
    """

    mean: OptionalFloat
    low: OptionalFloat
    high: OptionalFloat
    values: tuple[float | None, ...]
    ties: TieResult | None = None


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
        unjudged_share: Mean share of unjudged documents in the top 10.
        returned_documents: Documents ranked, over all queries.
    """

    name: str
    kind: Literal["system", "floor", "ceiling"]
    note: str = ""
    config: dict[str, Any] | None = None
    measures: dict[str, MeasureResult]
    judged_only: tuple[float | None, ...] = ()
    unjudged_share: OptionalFloat = None
    returned_documents: int = 0


class ComparisonResult(ReportRecord):
    """One system against the baseline on one measure; see ``compare.Comparison``.

    Attributes:
        judged_only_difference: The same difference over judged documents only (primary measure).
        answer: What the comparison shows (primary measure): better, worse, …
    """

    measure: str
    baseline: str
    candidate: str
    difference: float
    low: OptionalFloat
    high: OptionalFloat
    p: float
    p_holm: OptionalFloat
    wins: int
    ties: int
    losses: int
    min_detectable_difference: OptionalFloat
    judged_only_difference: OptionalFloat = None
    answer: str | None = None


class ListInfo(ReportRecord):
    """One input list and what was noticed about it.

    Attributes:
        name: Its name.
        kind: A source, or a rerank list.
        roles: Its roles.
        read_options: The resolved options it was read with.
        score_space: What a rerank list's numbers mean.
        unanswered_queries: Judged queries it returned nothing for; scored by default.
        unjudged_queries: Queries it answered that are not judged; ignored.
        unmatched_queries: The first of these, each with the judged query that was perhaps meant.
        duplicate_rows: Rows dropped under ``on_duplicate: best_rank``.
        zero_scores: Rows scored exactly 0: padding, more often than not.
        has_known_documents: Whether any document of a run is judged at all, and any of a rerank
            list in some run; where none is, the ids are most likely of two kinds.
        problems: What a look at a rerank list's scores found, a sentence each.
        degraded_queries: Queries of a rerank list that the provider it names did not score.
        provider: ``provider/model`` of a rerank list, where that is known.
        ledger: What it cost and how long it took, where that is known; see ``rerank.ledger``.
    """

    name: str
    kind: Literal["run", "rerank"]
    roles: tuple[str, ...]
    read_options: dict[str, Any]
    score_space: str | None = None
    unanswered_queries: int
    unjudged_queries: int
    unmatched_queries: tuple[tuple[str, str | None], ...] = ()
    duplicate_rows: int
    zero_scores: int
    has_known_documents: bool = True
    problems: tuple[str, ...] = ()
    degraded_queries: int = 0
    provider: str | None = None
    ledger: dict[str, Any] | None = None


class Collection(ReportRecord):
    """What was found on one dataset.

    Attributes:
        name: The dataset.
        version: Its version.
        fingerprint: SHA-256 over the contents that were used.
        digests: SHA-256 of each part.
        split: Which split was evaluated; None = all judged queries.
        query_type: Which query type; None = all.
        tuning_split: Where the best single source was chosen; None = on the evaluated queries.
        judgments: What an unjudged document means here.
        binary_relevance: Grade from which binary measures count.
        measures: Measure names as the dataset resolves them; the first is the primary one.
        baseline: The system compared with.
        queries: The Q evaluated query ids.
        types: Their types.
        groups: Their groups.
        has_irrelevant_judgments: Whether any document of these queries is judged not relevant;
            where none is, a judged-only difference is shown but vetoes no answer.
        queries_without_relevant: Queries without a relevant document; they score 0.
        runs: The input lists.
        systems: The rows, floor and ceiling rows last.
        comparisons: By measure, in the order of the systems.
    """

    name: str
    version: str
    fingerprint: str
    digests: dict[str, str]
    split: str | None
    query_type: str | None
    tuning_split: str | None
    judgments: Literal["pooled", "sparse", "complete"]
    binary_relevance: int
    measures: tuple[str, ...]
    baseline: str
    queries: tuple[str, ...]
    types: tuple[str | None, ...]
    groups: tuple[str, ...]
    has_irrelevant_judgments: bool = True
    queries_without_relevant: int
    runs: tuple[ListInfo, ...]
    systems: tuple[SystemResult, ...]
    comparisons: tuple[ComparisonResult, ...]

    @property
    def primary_measure(self) -> str:
        """The measure that decides."""
        return self.measures[0]

    @property
    def ranked_systems(self) -> tuple[SystemResult, ...]:
        """The systems by primary mean, best first; equals in the experiment's order."""

        def sort_key(row: SystemResult) -> float:
            mean = row.measures[self.primary_measure].mean
            return -math.inf if mean is None else mean

        systems = (row for row in self.systems if row.kind == "system")
        return tuple(sorted(systems, key=sort_key, reverse=True))

    @property
    def reference_rows(self) -> tuple[SystemResult, ...]:
        """Floor and ceiling rows."""
        return tuple(row for row in self.systems if row.kind != "system")

    def system(self, name: str) -> SystemResult:
        """The row of that name."""
        return next(row for row in self.systems if row.name == name)

    def comparison(self, candidate: str, measure: str) -> ComparisonResult | None:
        """That system against the baseline; None for the baseline and the bounds."""
        matches = (c for c in self.comparisons if (c.candidate, c.measure) == (candidate, measure))
        return next(matches, None)


class Provenance(ReportRecord):
    """Where the numbers come from.

    Attributes:
        created: When, UTC, ISO 8601.
        source: The experiment's file name.
        source_sha256: SHA-256 of what that file says, sweeps expanded and overrides applied.
        versions: Of this package, Python and what computes.
        v2_enabled: What ``RAG_FUSION_V2_ENABLED`` said; false = v2 ran as v1.
        overrides: Values that replaced the file's, as ``--set`` stated them.
    """

    created: str
    source: str
    source_sha256: str
    versions: dict[str, str]
    v2_enabled: bool
    overrides: tuple[str, ...] = ()


class Report(TableView, ReportRecord):
    """One run of one experiment.

    Attributes:
        format: Always ``fusion-bench-report``.
        format_version: See the history in this module.
        name: The experiment.
        settings: The resolved experiment apart from its systems: ties, alpha, seed, …
        provenance: Where the numbers come from.
        collections: One per dataset.
    """

    format: Literal["fusion-bench-report"] = FORMAT
    format_version: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    name: str
    settings: dict[str, Any]
    provenance: Provenance
    collections: tuple[Collection, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``report.json`` has it."""
        return self.model_dump(mode="json")

    def _summary(self) -> str:
        parts = (f"{c.name}: {len(c.ranked_systems)} systems" for c in self.collections[:3])
        more = ", …" if len(self.collections) > 3 else ""
        return f"Report({self.name!r}, {', '.join(parts)}{more})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a collection and system, the best first, with the mean of each measure."""
        rows = [(c, row) for c in self.collections for row in c.ranked_systems][:limit]
        measures = dict.fromkeys(name for c in self.collections for name in c.measures)
        return {
            "collection": [collection.name for collection, _ in rows],
            "system": [row.name for _, row in rows],
            **{
                name: [row.measures[name].mean if name in row.measures else None for _, row in rows]
                for name in measures
            },
            "answer": [
                None if found is None else found.answer
                for c, row in rows
                for found in [c.comparison(row.name, c.primary_measure)]
            ],
        }

    @property
    def alpha(self) -> float:
        """Level of intervals and tests."""
        return float(self.settings.get("alpha", 0.05))


def read_report(path: Path | str) -> Report:
    """Read a ``report.json``.

    Raises:
        DataError: No such file, not a report, or a format this version does not know.
    """
    return read_stored(Path(path), Report, what="report", remedy="run the experiment again")
