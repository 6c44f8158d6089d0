"""One run of one experiment, as ``report.json`` holds it; how such a file is read.

Format history:
    1   first version
    2   keys renamed, among them unjudged_share, unmatched_queries, queries_without_relevant
    3   ``lint``: findings about the configuration
    4   p and intervals of all comparisons together: ``p_adjusted``, ``critical_value``; ``fusion``;
        ``source_ties``, and what the scores and ranks of each list say against it; ``unjudged`` of
        a comparison instead of ``judged_only_difference``, ``filled`` of a system
    5   ``bounds`` of every measure of a system, ``judged_shares`` of a system
    6   ``slice_bounds`` of a system instead of ``judged_shares``
    8   ``obstacles``, ``means_of_others``; how far the ids of each list meet
    9   one inference: ``p`` is that over the family; without ``p_adjusted``, ``p_floor``,
        ``few_changes`` and ``skew``; with ``loss_share``

A file that somebody edited would otherwise be shown, compared and planned with as if measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field, PrivateAttr, create_model

from fusion_bench.checks.records import LintFinding
from fusion_bench.config.json_records import ReportRecord, read_stored
from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, DataError, FusionBenchError
from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    MeasureResult,
    SystemResult,
)
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.io.dataset_config import find_folders
from fusion_bench.io.held_out import refuse_held_out
from fusion_bench.measures._base import is_bounded
from fusion_bench.stats.comparison_family import MIN_GAIN
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.stats.unjudged import CompletionBounds
from fusion_bench.util.formatting import Columns, TableView, pluralize

if TYPE_CHECKING:
    from fusion_bench.evaluation.details.report_details import ReportDetails


@dataclass
class LazyDetails:
    """Computes the details of a report when they are first asked for; any two are equal.

    A report that is read, copied deeply or pickled has none: they need the aligned runs.

    Attributes:
        compute: Called once with the report; None = there is nothing to compute them from.
    """

    compute: Callable[[Report], ReportDetails] | None = field(default=None, compare=False)
    _details: ReportDetails | None = field(default=None, compare=False)

    @property
    def is_available(self) -> bool:
        """Whether they are there, or can be computed."""
        return self._details is not None or self.compute is not None

    def __reduce__(self) -> tuple[type[LazyDetails], tuple[()]]:
        return LazyDetails, ()

    def of_report(self, report: Report) -> ReportDetails:
        """The details.

        Raises:
            ConfigError: There is nothing to compute them from.
        """
        if self._details is None:
            if self.compute is None:
                raise ConfigError(
                    f"report {report.name!r} has no details: they come with a run, not with a "
                    "file: call run_experiment or compare again, or read the details.json that "
                    "'fusion-bench eval --details-json' writes"
                )
            self._details, self.compute = self.compute(report), None
        return self._details


#: Keys of an experiment that decide p, intervals and answers.
INFERENCE_KEYS = ("alpha", "min_gain", "seed")
FORMAT: Literal["fusion-bench-report"] = "fusion-bench-report"
FORMAT_VERSION = 9


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

    @property
    def origin(self) -> str:
        """The experiment's file and the time, in a line."""
        return f"{self.source}, {self.created}"

    @property
    def facts(self) -> dict[str, str]:
        """What every page says of it, by name."""
        return {
            "created": self.created,
            "experiment": f"{self.source} (SHA-256 {self.source_sha256})",
            **({"--set": ", ".join(self.overrides)} if self.overrides else {}),
            "versions": ", ".join(f"{name} {version}" for name, version in self.versions.items()),
        }


class ExperimentRecord(ReportRecord):
    """What every stored result of an experiment says of itself.

    Attributes:
        format: The kind of record.
        format_version: Version of this kind; its module has the history.
        name: The experiment.
        settings: What was resolved, apart from the systems: ties, alpha, seed, …
        provenance: Where the numbers come from.
    """

    format: str
    format_version: int
    name: str
    settings: dict[str, Any]
    provenance: Provenance


class Report(TableView, ExperimentRecord):
    """One run of one experiment.

    Attributes:
        collections: One per dataset.
        lint: What lint finds in the configuration, see ``docs/reference/lint.md``.
    """

    format: Literal["fusion-bench-report"] = FORMAT
    format_version: Annotated[int, Field(ge=1)] = FORMAT_VERSION
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
        """Let the report compute its details when they are asked for."""
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
    def family_size(self) -> int:
        """Comparisons on the primary measure, over all collections."""
        return sum(len(each.ranked_comparisons) for each in self.collections)

    @property
    def alpha(self) -> float:
        """Level of intervals and tests."""
        return float(self.settings.get("alpha", 0.05))


#: Sums of floats in another order differ by less.
ROUNDING: Final = 1e-9


def check_column(
    place: str, column: Sequence[float | None], count: int, *, is_bounded: bool
) -> Iterator[str]:
    """What is wrong with a column: not a value a query, or one outside [0, 1].

    Args:
        place: Where it stands.
        column: The values; None = missing.
        count: The queries.
        is_bounded: Whether all values lie in [0, 1].
    """
    if len(column) != count:
        values = pluralize(len(column), "value")
        yield f"{place}: {values} for {pluralize(count, 'query')}"
    if is_bounded:
        yield from _check_range(place, column)


def _check_range(place: str, values: Iterable[float | None], least: float = 0) -> Iterator[str]:
    """The first of these values that lies outside [0, 1] by more than a rounding error."""
    for value in values:
        if value is not None and not least - ROUNDING <= value <= 1 + ROUNDING:
            yield f"{place}: values from {least:g} to 1 are needed, given {value:g}"
            return


def _check_ends(
    ends: Mapping[str, float | None], name: str, middle: float | None, least: float | None
) -> Iterator[str]:
    """The ends that lie outside [least, 1], or on the wrong side of what they enclose."""
    for place, end in ends.items():
        if end is None:
            continue
        if least is not None:
            yield from _check_range(place, (end,), least)
        is_lower = place.endswith(("low", "minimum"))
        if middle is not None and (end - middle if is_lower else middle - end) > ROUNDING:
            side = "above" if is_lower else "below"
            yield f"{place}: {end:g} lies {side} the {name} {middle:g}"


def _find_repeated(names: Sequence[str]) -> str | None:
    """The first name that stands there twice."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _check_system(collection: Collection, row: SystemResult) -> Iterator[str]:
    """What is wrong with one row of the table.

    Args:
        collection: Its collection.
        row: The row.
    """
    count = len(collection.queries)
    for name in collection.measures:
        if name not in row.measures:
            yield f"measures: no {name}"
    for name, result in row.measures.items():
        for problem in _check_measure(result, count, is_bounded=is_bounded(name)):
            yield f"measures.{name}.{problem}"
    is_primary_bounded = bool(collection.measures) and is_bounded(collection.primary_measure)
    for place, column in {"judged_only": row.judged_only, "filled": row.filled}.items():
        if column:
            yield from check_column(place, column, count, is_bounded=is_primary_bounded)
    yield from _check_range("unjudged_share", (row.unjudged_share,))
    for item in row.slice_bounds:
        yield from _check_bounds(
            f"slice_bounds.{item.field}", item.bounds, is_bounded=is_primary_bounded
        )


def _check_bounds(place: str, bounds: CompletionBounds, *, is_bounded: bool) -> Iterator[str]:
    yield from _check_range(f"{place}.judged", (bounds.judged,))
    if is_bounded:
        yield from _check_range(place, (bounds.low, bounds.high))


def _check_measure(result: MeasureResult, count: int, *, is_bounded: bool) -> Iterator[str]:
    yield from check_column("values", result.values, count, is_bounded=is_bounded)
    values = np.array(result.values, dtype=np.float64)
    yield from _check_mean(result.mean, values)
    for number, repeat in enumerate(result.trials):
        yield from check_column(f"trials.{number}", repeat, count, is_bounded=is_bounded)
    if result.trials and all(len(repeat) == len(values) for repeat in result.trials):
        means = np.mean(np.array(result.trials, dtype=np.float64), axis=0)
        if not np.allclose(means, values, rtol=0, atol=ROUNDING, equal_nan=True):
            yield f"trials: their means are not the values (tolerance {ROUNDING:g})"
    if result.bounds is not None:
        yield from _check_bounds("bounds", result.bounds, is_bounded=is_bounded)
    ends = {"low": result.low, "high": result.high}
    for kind, ties in {"ties": result.ties, "source_ties": result.source_ties}.items():
        if ties is not None:
            ends |= {f"{kind}.{end}": getattr(ties, end) for end in ("minimum", "maximum")}
    yield from _check_ends(ends, "mean", result.mean, 0 if is_bounded else None)


def _check_mean(mean: float | None, values: FloatArray) -> Iterator[str]:
    """The mean is that of the values; none where a value is missing."""
    if not len(values):
        return
    expected = None if np.isnan(values).any() else exact_mean(values)
    if expected is None and mean is not None:
        yield f"mean: {mean:g}, and a value is missing, so that there is none"
    elif expected is not None and (mean is None or not abs(mean - expected) <= ROUNDING):
        yield (
            f"mean: {'none' if mean is None else f'{mean:g}'}, and the mean of its "
            f"{pluralize(len(values), 'value')} is {expected:g} (tolerance {ROUNDING:g})"
        )


_FIELDS: Final[dict[str, Any]] = {
    name: (Experiment.model_fields[name].annotation, Experiment.model_fields[name])
    for name in INFERENCE_KEYS
}
#: The settings with which systems of a report are compared again, by the rules of an experiment.
_InferenceSettings: Final = create_model("_InferenceSettings", __base__=StrictModel, **_FIELDS)


def _find_inconsistencies(report: Report) -> Iterator[str]:
    """What no evaluation would have written, each with its place; nothing where all agrees."""
    given = {name: report.settings[name] for name in INFERENCE_KEYS if name in report.settings}
    try:
        parse_model(_InferenceSettings, given, lambda path: f"settings.{path[0]}")
    except ConfigError as error:
        yield str(error)
    if not report.collections:
        yield "collections: at least one is needed"
    names = [each.name for each in report.collections]
    if repeated := _find_repeated(names):
        yield f"collections: {repeated!r} stands there twice"
    for number, collection in enumerate(report.collections):
        for problem in _check_collection(collection):
            yield f"collections.{number}.{problem}"


def _check_collection(collection: Collection) -> Iterator[str]:
    columns = {"types": collection.types, "groups": collection.groups}
    columns |= {f"slices.{name}": values for name, values in collection.slices.items()}
    for place, column in columns.items():
        if len(column) != len(collection.queries):
            count = pluralize(len(collection.queries), "query")
            yield f"{place}: {len(column)} entries for {count}"
    names: dict[str, Sequence[str]] = {
        "queries": collection.queries,
        "measures": collection.measures,
        "systems": [row.name for row in collection.systems],
    }
    for place, listed in names.items():
        if not listed:
            yield f"{place}: at least one is needed"
        if repeated := _find_repeated(listed):
            yield f"{place}: {repeated!r} stands there twice"
    if collection.baseline not in collection.competitors:
        yield f"baseline: no system {collection.baseline!r}"
    checked = {
        f"systems.{i}": _check_system(collection, row) for i, row in enumerate(collection.systems)
    }
    checked |= {
        f"comparisons.{i}": _check_comparison(collection, each)
        for i, each in enumerate(collection.comparisons)
    }
    for place, problems in checked.items():
        yield from (f"{place}.{problem}" for problem in problems)


def _check_comparison(collection: Collection, comparison: ComparisonResult) -> Iterator[str]:
    """Names that are known, and the difference of the two means."""
    if comparison.measure not in collection.measures:
        yield f"measure: no measure {comparison.measure!r} in this collection"
        return
    for role in ("candidate", "baseline"):
        if getattr(comparison, role) not in collection.competitors:
            yield f"{role}: no system {getattr(comparison, role)!r} in this collection"
            return
    means = [
        collection.system(name).measures[comparison.measure].mean
        for name in (comparison.candidate, comparison.baseline)
    ]
    expected = None if None in means else means[0] - means[1]  # type: ignore[operator]
    if expected is not None and not abs(comparison.difference - expected) <= ROUNDING:
        yield (
            f"difference: {comparison.difference:g}, and the means differ by {expected:g} "
            f"(tolerance {ROUNDING:g})"
        )
    counts = (comparison.wins, comparison.ties, comparison.losses)
    if min(counts) < 0 or sum(counts) != len(collection.queries):
        total = pluralize(len(collection.queries), "query")
        yield f"wins, ties and losses: {counts}, and the collection has {total}"
    yield from _check_range("p", (comparison.p,))
    ends = {"low": comparison.low, "high": comparison.high}
    least = -1 if is_bounded(comparison.measure) else None
    yield from _check_ends(ends, "difference", comparison.difference, least)


REMEDY = "run the experiment again"


def read_report(path: Path | str) -> Report:
    """Read a ``report.json``, or that of a folder, and check that its numbers agree.

    Raises:
        DataError: No such file, not a report, a format this version does not know, numbers that
            no evaluation would have written, or values of queries that a campaign holds out now.
    """
    path = Path(path) / FILE if Path(path).is_dir() else path
    report = read_stored(Path(path), Report, what="report", remedy=REMEDY)
    problem = next(_find_inconsistencies(report), None)
    if problem is not None:
        raise DataError(f"{path}: {problem}: {REMEDY}")
    for each in report.collections:
        folders = [folder / each.name for folder in find_folders(None, Path(path).parent)]
        refuse_held_out(folders, each.queries, f"{path}: {each.name}")
    return report


#: Its file in an output folder.
FILE = "report.json"


def read_last_report(folder: Path) -> Report | None:
    """The report in a folder; None where there is none that this version reads.

    A report that is there is only compared with: it never stands in the way of a new one.

    Args:
        folder: Where the new report goes.
    """
    path = folder / FILE
    try:
        return read_report(path) if path.is_file() else None
    except (FusionBenchError, OSError):
        return None
