"""One run of one experiment, as ``report.json`` holds it.

Format history:
    1   first version
    2   keys renamed, among them unjudged_share, unmatched_queries, queries_without_relevant
    3   ``lint``: findings about the configuration
    4   p and intervals of all comparisons together: ``p_adjusted``, ``critical_value``; ``fusion``;
        ``source_ties``, and what the scores and ranks of each list say against it; ``unjudged`` of
        a comparison instead of ``judged_only_difference``, ``filled`` of a system
    5   ``bounds`` of every measure of a system, ``judged_shares`` of a system
    6   ``slice_bounds`` of a system instead of ``judged_shares``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PrivateAttr

from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.lazy_details import LazyDetails
from fusion_bench.evaluation.report_records.lint_finding import LintFinding
from fusion_bench.evaluation.report_records.record import ReportRecord
from fusion_bench.stats.compare_family import MIN_GAIN
from fusion_bench.stats.corrections import Correction
from fusion_bench.util.table_view import Columns, TableView

if TYPE_CHECKING:
    from fusion_bench.evaluation.details.records import ReportDetails

FORMAT: Literal["fusion-bench-report"] = "fusion-bench-report"
FORMAT_VERSION = 7


class Provenance(ReportRecord):
    """Where the numbers come from.

    Attributes:
        created: When, UTC, ISO 8601.
        source: The experiment's file name.
        source_path: The experiment's file, relative to the folder in which the command ran; only
            its name where it lies elsewhere and was named by an absolute path.
        source_sha256: SHA-256 of what that file says, sweeps expanded and overrides applied.
        versions: Of this package, its numbers (``engine``), Python and what computes.
        v2_enabled: What ``RAG_FUSION_V2_ENABLED`` said; false = v2 ran as v1.
        overrides: Values that replaced the file's, as ``--set`` stated them.
    """

    created: str
    source: str
    source_sha256: str
    versions: dict[str, str]
    v2_enabled: bool
    overrides: tuple[str, ...] = ()
    source_path: str = ""

    @property
    def experiment_file(self) -> str:
        """The experiment's file as a command names it that runs in the same folder."""
        return self.source_path or self.source


class Report(TableView, ReportRecord):
    """One run of one experiment.

    Attributes:
        format: Always ``fusion-bench-report``.
        format_version: See the history in this module.
        name: The experiment.
        settings: The resolved experiment apart from its systems: ties, alpha, seed, …
        provenance: Where the numbers come from.
        collections: One per dataset.
        lint: What lint finds in the configuration, see ``docs/lint.md``.
    """

    format: Literal["fusion-bench-report"] = FORMAT
    format_version: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    name: str
    settings: dict[str, Any]
    provenance: Provenance
    collections: tuple[Collection, ...]
    lint: tuple[LintFinding, ...] = ()
    _lazy: LazyDetails = PrivateAttr(default_factory=LazyDetails)

    def details(self) -> ReportDetails:
        """Ranks, terms, texts and sources behind the values, computed when first asked for.

        Until then a report of ``run_experiment`` or ``compare`` holds the aligned runs.

        Raises:
            ConfigError: The report was read from a file.
        """
        return self._lazy.of_report(self)

    @property
    def has_details(self) -> bool:
        """Whether :meth:`details` gives some; not for a report that was read from a file."""
        return self._lazy.is_available

    def with_lazy_details(self, compute: Callable[[Report], ReportDetails]) -> Report:
        """The same report, which can compute its details."""
        report = self.model_copy()
        report._lazy = LazyDetails(compute)
        return report

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
                None if comparison is None else comparison.answer
                for c, row in rows
                for comparison in [c.comparison(row.name, c.primary_measure)]
            ],
        }

    @property
    def min_gain(self) -> float:
        """A smaller difference in the primary measure is not worth a change."""
        return float(self.settings.get("min_gain", MIN_GAIN))

    @property
    def correction(self) -> Correction:
        """How p and intervals account for all comparisons."""
        correction: Correction = self.settings.get("correction", "max_t")
        return correction

    @property
    def family_size(self) -> int:
        """Comparisons on the primary measure, over all collections."""
        return sum(len(each.ranked_comparisons) for each in self.collections)

    @property
    def alpha(self) -> float:
        """Level of intervals and tests."""
        return float(self.settings.get("alpha", 0.05))
