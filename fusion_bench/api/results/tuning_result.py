"""The result of a tuning run, for people who work in Python."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from fusion_bench.experiment.system import System
from fusion_bench.report.tuning.findings import tuning_findings
from fusion_bench.report.tuning_records.trials import Value
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.stats.comparison import Comparison
from fusion_bench.tune.search.trial_log import Trial, TrialOrigin
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.util.table_view import Columns, TableView

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing
    from optuna.study import Study

    from fusion_bench.api.html_page import HtmlPage


@dataclass(frozen=True, eq=False, repr=False)
class TuningResult(TableView):
    """What a tuning run chose, and whether it is better than the default.

    Attributes:
        report: Everything that was found, as ``fusion-bench tune`` writes it.
        objective: What was tuned, on all judged queries.
    """

    report: TuningReport
    objective: TuningObjective

    @property
    def verdict(self) -> str:
        """``ship``, ``keep``, ``worse`` or ``too few queries``: decided on held-out queries."""
        return self.report.verdict

    @property
    def explanation(self) -> str:
        """The verdict and its numbers in a few sentences."""
        return next(f.text for f in tuning_findings(self.report) if f.key == "verdict")

    @property
    def parameters(self) -> dict[str, Value]:
        """The chosen values by path, such as ``fusion.k``."""
        return dict(self.report.choice.params)

    @property
    def system(self) -> System:
        """The tuned system, for ``fuse`` and ``compare``."""
        name = f"{self.report.system} tuned"
        return System.model_validate({**self.report.choice.config, "name": name})

    @property
    def comparison(self) -> Comparison:
        """The tuned system against the default on the held-out queries; this decides."""
        gain = self.report.held_out
        return Comparison(
            measure=self.report.measure,
            baseline=self.report.system,
            candidate=f"{self.report.system} tuned",
            baseline_mean=gain.default,
            candidate_mean=gain.tuned,
            difference=gain.difference,
            low=math.nan if gain.low is None else gain.low,
            high=math.nan if gain.high is None else gain.high,
            p=gain.p,
            p_adjusted=None,
            wins=gain.wins,
            ties=gain.ties,
            losses=gain.losses,
            min_detectable_difference=None,
            queries=gain.queries,
            groups=gain.groups,
        )

    @cached_property
    def study(self) -> Study:
        """The search as a study of Optuna, with ``origin`` and ``config`` of each trial."""
        from fusion_bench.tune.search.export_study import build_study  # imports Optuna

        trials = [
            Trial(
                trial.number,
                dict(trial.params),
                math.nan if trial.value is None else trial.value,
                cast("TrialOrigin", trial.origin),
            )
            for trial in self.report.trials
        ]
        return build_study(trials, self.objective, f"{self.report.system} on {self.report.dataset}")

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``tuning.json`` has it."""
        return self.report.model_dump(mode="json")

    def plot(self, kind: str | None = None) -> Drawing:
        """The first figure of the report, or the first of one kind; see :func:`plot`."""
        from fusion_bench.api.plot import plot

        return plot(self, kind)

    def page(self) -> HtmlPage:
        """The page for a browser, which a notebook shows inline; see :func:`page`."""
        from fusion_bench.api.page import page

        return page(self)

    def _summary(self) -> str:
        chosen = ", ".join(f"{path} {_shorten(value)}" for path, value in self.parameters.items())
        return f"TuningResult({self.verdict!r}: {chosen})\n{self.comparison!r}"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a trial."""
        return self.report._table_columns(limit)


def _shorten(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
