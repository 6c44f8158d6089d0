"""What the console knows, and its answers; it holds no setting, so any number of pages may ask."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Final

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.judge_checks.dataset_judges import find_dataset_warnings
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.explain.explanation import explain_ranking
from fusion_bench.io.dataset import Dataset
from fusion_bench.lint import describe_dataset, lint_systems
from fusion_bench.serve.console.changes import Changes, compare_measure, list_changes
from fusion_bench.serve.console.controls import Control, ControlPanel
from fusion_bench.serve.console.query_details import KnownTitles, describe_query
from fusion_bench.serve.console.setting import Setting
from fusion_bench.serve.console.system_evaluator import SystemEvaluator
from fusion_bench.tune.validation.splits import QuerySplit
from fusion_bench.util.files.output_folder import name_experiment

#: What stands beside every number of the console.
LABEL: Final = "tuning queries, for orientation"


@dataclass(frozen=True, eq=False)
class ConsoleSession:
    """An experiment on one dataset, opened for the console.

    Attributes:
        experiment: The experiment.
        source: Where it was read from.
        dataset: With every list of the experiment's systems, and every rerank list.
        dataset_name: How the experiment names it.
        dataset_file: Its ``dataset.yaml``.
        runs: Every judged query.
        split: The queries that the console shows, and those that it holds out.
        tuning: The settings of ``tune``, of which the split and the verdict follow.
        panel: Lists the controls.
        evaluator: Evaluates on the tuning queries.
        system: Name of the system that a page starts with.
        folders: Where named datasets live, if an option said so.
        lock: Held by whoever computes or writes: caches of arrays serve one thread at a time.
    """

    experiment: Experiment
    source: Source
    dataset: Dataset
    dataset_name: str
    dataset_file: Path
    runs: AlignedRuns
    split: QuerySplit
    tuning: TuneSettings
    panel: ControlPanel
    evaluator: SystemEvaluator
    system: str
    folders: tuple[Path, ...] = ()
    lock: RLock = field(default_factory=RLock)

    @property
    def baseline(self) -> System:
        """The pinned baseline."""
        return self.experiment.systems[self.experiment.baseline]

    @cached_property
    def baseline_values(self) -> FloatArray:
        """(M, Q): values of the pinned baseline."""
        return self.evaluator.evaluate(self.baseline)

    @cached_property
    def titles(self) -> KnownTitles:
        """Titles of the documents that were shown."""
        return KnownTitles(self.dataset.documents)

    @cached_property
    def groups(self) -> IntArray:
        """(Q,): codes of the groups of the tuning queries."""
        return number_by_appearance(self.evaluator.runs.groups)[0]

    def describe(self) -> dict[str, Any]:
        """What a page needs before its first answer."""
        measures = [measure.name for measure in self.evaluator.measures]
        return {
            "experiment": name_experiment(self.source.path),
            "dataset": self.dataset.name,
            "label": LABEL,
            "queries": len(self.evaluator.runs.queries),
            "groups": int(self.groups.max()) + 1,
            "split": self.split.origin,
            "held_out": None if self.split.is_cross_fitted else int(self.split.held_out.sum()),
            "alpha": self.experiment.alpha,
            "measures": measures,
            "primary": measures[0],
            "baseline": self.baseline.name,
            "notes": [*self.judge_warnings, *self._describe_lists()],
            "systems": list(self.experiment.systems),
            "system": self.system,
        }

    def answer(self, setting: Setting, previous: Setting | None = None) -> dict[str, Any]:
        """The measures of a setting, the queries that changed, its findings and its controls.

        Args:
            setting: The setting.
            previous: The setting before; None = there is none.

        Raises:
            FusionBenchError: A value breaks a rule, or the system cannot be computed.
        """
        system, controls = self.open_setting(setting)
        with self.lock:
            values = self.evaluator.evaluate(system)
            base = self.baseline_values
            earlier = None
            if previous is not None:
                earlier = self.evaluator.evaluate(self.open_setting(previous)[0])
        rows = [
            compare_measure(measure, row, base_row, self.groups, alpha=self.experiment.alpha)
            for measure, row, base_row in zip(self.evaluator.measures, values, base, strict=True)
        ]
        return {
            "label": LABEL,
            "measures": [asdict(row) for row in rows],
            "baseline": self._changes(values, base).to_json(),
            "previous": None if earlier is None else self._changes(values, earlier).to_json(),
            "findings": self._lint(system),
            "controls": [_describe_control(control) for control in controls],
        }

    def query_details(
        self, query: str, setting: Setting, against: Setting | None = None
    ) -> dict[str, Any]:
        """One query under a setting and under another, or under the baseline.

        Args:
            query: Id of a tuning query.
            setting: The setting.
            against: What it is compared with; None = the baseline.

        Raises:
            ConfigError: No such tuning query; held-out ones are not shown.
            FusionBenchError: A value breaks a rule, or the system cannot be computed.
        """
        runs = self.evaluator.runs
        if query not in runs.queries:
            raise ConfigError(
                f"query: {query!r:.100} is no tuning query (held-out queries are not shown)"
            )
        other = self.baseline if against is None else self.open_setting(against)[0]
        system, _ = self.open_setting(setting)
        with self.lock:
            before, after = (
                explain_ranking(each, runs, query, self.evaluator.spaces)
                for each in (other, system)
            )
        return describe_query(before, after, self.dataset, self.titles)

    def open_setting(self, setting: Setting) -> tuple[System, list[Control]]:
        """The system of a setting, and its controls.

        Raises:
            ConfigError: A value that breaks a rule, or is outside its range.
        """
        system = self.panel.builder.build_system(setting)
        return system, self.panel.list_controls(setting, system)

    @cached_property
    def judge_warnings(self) -> tuple[str, ...]:
        """What speaks against a machine judge of the dataset; empty where people judged."""
        systems = self.experiment.systems.values()
        return tuple(each.text for each in find_dataset_warnings(self.dataset, systems))

    def _describe_lists(self) -> list[str]:
        """The rerank lists that a fallback answered in part."""
        reasons = (self.dataset.degradation(name) for name in sorted(self.dataset.rerankers))
        return [reason for reason in reasons if reason is not None]

    def _changes(self, after: FloatArray, before: FloatArray) -> Changes:
        return list_changes(self.evaluator.runs.queries, after[0], before[0], self.dataset)

    def _lint(self, system: System) -> list[dict[str, str]]:
        """What lint finds in the system."""
        facts = [describe_dataset(self.dataset)]
        merged = lint_systems([system], facts, ignored=self.experiment.lint.ignore)
        findings = (each.to_finding(None) for each in merged)
        return [
            {"id": each.id, "severity": each.severity, "message": each.message} for each in findings
        ]


def _describe_control(control: Control) -> dict[str, Any]:
    parameter = control.parameter
    return {
        "path": parameter.path,
        "kind": parameter.kind,
        "low": parameter.low,
        "high": parameter.high,
        "log": parameter.log,
        "choices": list(parameter.choices),
        "value": control.value,
        "structural": control.is_structural,
    }
