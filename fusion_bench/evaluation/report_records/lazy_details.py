"""What a report knows of its details before anybody asked for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fusion_bench.errors import ConfigError

if TYPE_CHECKING:
    from fusion_bench.evaluation.details.records import ReportDetails
    from fusion_bench.evaluation.report_records.report import Report


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
