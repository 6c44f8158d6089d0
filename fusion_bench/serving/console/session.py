"""Compare settings on the same queries, and one query under two settings."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Final

import numpy as np

from fusion_bench.checks.judges import find_dataset_warnings
from fusion_bench.checks.lint import describe_dataset, lint_systems
from fusion_bench.checks.unjudged import measure_unjudged
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.query_splits import QuerySplit
from fusion_bench.errors import ConfigError, FusionBenchError, UnknownNameError
from fusion_bench.evaluation.explanation import Explanation, ScoreTrace, explain_ranking
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.experiment.system import System
from fusion_bench.gate.comparison import explain_move
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.json_objects import query_excerpt, read_titles
from fusion_bench.measures import Measure
from fusion_bench.report.glossary import TERMS
from fusion_bench.serving.console.setting import Control, ControlPanel, Setting, SystemEvaluator
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.stats.values import Pair
from fusion_bench.util.files import name_experiment
from fusion_bench.util.formatting import format_interval, format_number

#: What a page needs of a control's parameter.
CONTROL_FIELDS: Final = ("path", "kind", "low", "high", "log")
#: Queries that are listed on each side, and values of a slider that a curve has.
LISTED: Final = 12
CURVE_VALUES: Final = 13


def _compare_measure(
    measure: Measure, values: FloatArray, baseline: FloatArray, keys: Sequence[str], alpha: float
) -> dict[str, Any]:
    """A measure of a setting against the baseline; both (Q,), as are the ids of the groups.

    Returns:
        Its name; both means; the difference with the ends of Student's t interval by group, not
        adjusted, None = one group; the numbers as all pages write them.
    """
    pair = Pair.from_arrays(values, baseline, keys, is_bounded=measure.is_bounded)
    estimate = pair.estimate(alpha)
    mean, base = exact_mean(values), exact_mean(baseline)
    is_known = math.isfinite(estimate.low) and math.isfinite(estimate.high)
    low, high = (estimate.low, estimate.high) if is_known else (None, None)
    return {
        "measure": measure.name,
        "mean": mean,
        "baseline": base,
        "difference": estimate.mean,
        "low": low,
        "high": high,
        "texts": {
            "mean": format_number(mean),
            "baseline": format_number(base),
            "difference": format_number(estimate.mean, signed=True),
            "interval": format_interval(low, high, signed=True),
        },
    }


#: Documents of each list that are shown.
SHOWN: Final = 20


class KnownTitles:
    """Titles of documents, each looked up once: that takes seconds in a large file.

    Args:
        documents: As for :func:`~fusion_bench.io.json_objects.read_titles`.
    """

    def __init__(self, documents: Path | None) -> None:
        self._documents = documents
        self._titles: dict[str, str] = {}

    def find_titles(self, names: Collection[str]) -> dict[str, str]:
        """Document → title; empty where it has none."""
        unknown = [name for name in names if name not in self._titles]
        if unknown:
            titles = read_titles(self._documents, unknown)
            self._titles |= {name: titles.get(name, "") for name in unknown}
        return {name: self._titles[name] for name in names}


def _list_document(trace: ScoreTrace, titles: dict[str, str], other: Explanation) -> dict[str, Any]:
    """A document with its rank in this list and in the other; ``terms`` add up to its score."""
    return {
        "document": trace.document,
        "title": titles[trace.document],
        "grade": trace.grade,
        "rank": trace.rank or 0,
        "other_rank": _rank_of(trace.document, other),
        "score": trace.score,
        "terms": dict(trace.contributions),
    }


def _rank_of(document: str, explanation: Explanation) -> int | None:
    trace = explanation.find_trace(document)
    return None if trace is None else trace.rank


def _sort_key(move: dict[str, Any]) -> tuple[bool, int, str]:
    """Relevant documents first, then by the best rank before or after."""
    best = min(rank for rank in (move["before"], move["after"]) if rank is not None)
    return not (move["grade"] and move["grade"] > 0), best, move["document"]


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

    def describe(self) -> dict[str, Any]:
        """Describe the session to a page before its first answer."""
        measures = [measure.name for measure in self.evaluator.measures]
        degraded = (self.dataset.degradation(name) for name in sorted(self.dataset.rerankers))
        return {
            "experiment": name_experiment(self.source.path),
            "dataset": self.dataset.name,
            "label": LABEL,
            "queries": len(self.evaluator.runs.queries),
            "groups": int(self.evaluator.runs.group_codes.max()) + 1,
            "split": self.split.origin,
            "held_out": int(self.split.held_out.sum()),
            "alpha": self.experiment.alpha,
            "measures": measures,
            "primary": measures[0],
            "baseline": self.baseline.name,
            "notes": [*self.judge_warnings, *filter(None, degraded)],
            "systems": list(self.experiment.systems),
            "system": self.system,
            "terms": [{"name": term.name, "meaning": term.meaning} for term in TERMS],
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
        groups = self.evaluator.runs.groups
        facts = [describe_dataset(self.dataset)]
        merged = lint_systems([system], facts, ignored=self.experiment.lint.ignore)
        findings = (each.to_finding(None) for each in merged)
        return {
            "label": LABEL,
            "measures": [
                _compare_measure(measure, row, base_row, groups, self.experiment.alpha)
                for measure, row, base_row in zip(
                    self.evaluator.measures, values, base, strict=True
                )
            ],
            "baseline": self._list_changes(values[0], base[0]),
            "previous": None if earlier is None else self._list_changes(values[0], earlier[0]),
            "findings": [
                {"id": each.id, "severity": each.severity, "message": each.message}
                for each in findings
            ],
            "controls": [
                {
                    **{key: getattr(each.parameter, key) for key in CONTROL_FIELDS},
                    "choices": list(each.choices),
                    "value": each.value,
                    "structural": each.is_structural,
                }
                for each in controls
            ],
        }

    def explore(self, setting: Setting, path: str | None = None) -> dict[str, Any]:
        """The unjudged share of a setting, and the primary measure along a slider.

        Args:
            setting: The setting.
            path: The slider's parameter; None = no curve is needed.

        Returns:
            ``unjudged``: mean shares of the first 10 documents; ``curve``: pairs of a value and the
            mean of the primary measure, without values that break a rule.

        Raises:
            FusionBenchError: A value breaks a rule, or the system cannot be computed.
        """
        system, controls = self.open_setting(setting)
        sliders = {each.parameter.path: each for each in controls if not each.choices}
        points: list[tuple[str, float]] = []
        if path is not None:
            if path not in sliders:
                raise UnknownNameError("slider", path, sliders, where="path")
            points = [(path, value) for value in sliders[path].spread_values(CURVE_VALUES)]
        curve = []
        for name, value in points:
            changed = {"parameters": {**setting.parameters, name: value}}
            with suppress(FusionBenchError), self.lock:
                other, _ = self.open_setting(setting.model_copy(update=changed))
                curve.append((value, exact_mean(self.evaluator.evaluate(other)[0])))
        with self.lock:
            shares = {"setting": self._unjudged(system), "baseline": self._unjudged(self.baseline)}
        return {"unjudged": shares, "curve": curve}

    def _list_changes(self, after: FloatArray, before: FloatArray) -> dict[str, Any]:
        """List the queries whose values changed from ``before`` to ``after``, both (Q,).

        Returns:
            Numbers of queries that are better, the same but for float noise, and worse; those that
            ``won`` and ``lost`` most, each with its text and both values.
        """
        queries, known = self.evaluator.runs.queries, self.dataset.queries
        pair = Pair.from_arrays(after, before)
        worse, better, difference = pair.losses, pair.wins, pair.difference

        def list_queries(order: IntArray, count: int) -> list[dict[str, Any]]:
            return [
                {
                    "query": queries[q],
                    "text": query_excerpt(known.get(queries[q])),
                    "before": float(before[q]),
                    "after": float(after[q]),
                }
                for q in order[: min(count, LISTED)].tolist()
            ]

        # Reversed by the difference alone: equal ones keep the order of the queries.
        return {
            "better": better,
            "same": len(queries) - better - worse,
            "worse": worse,
            "won": list_queries(np.argsort(-difference, kind="stable"), better),
            "lost": list_queries(np.argsort(difference, kind="stable"), worse),
        }

    def query_details(
        self, query: str, setting: Setting, against: Setting | None = None
    ) -> dict[str, Any]:
        """Compare one query under a setting with another setting, or with the baseline.

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
            before, after = (explain_ranking(each, runs, query) for each in (other, system))
        lists = [
            [trace for trace in explanation.traces if trace.rank is not None][:SHOWN]
            for explanation in (before, after)
        ]
        names = dict.fromkeys(trace.document for traces in lists for trace in traces)
        relevant = [trace for trace in after.traces if trace.grade and trace.grade > 0]
        names |= dict.fromkeys(trace.document for trace in relevant[:SHOWN])
        titles = self.titles.find_titles(names)
        known = self.dataset.queries.get(after.query)
        moves: list[dict[str, Any]] = []
        for name in names:
            ranks = _rank_of(name, before), _rank_of(name, after)
            if ranks[0] != ranks[1]:
                judged = after.find_trace(name) or before.find_trace(name)
                moves.append(
                    {
                        "document": name,
                        "title": titles[name],
                        "grade": None if judged is None else judged.grade,
                        "before": ranks[0],
                        "after": ranks[1],
                        "cause": explain_move(name, before, after),
                    }
                )
        return {
            "query": after.query,
            "text": (known.text or "") if known is not None else "",
            "before": [_list_document(trace, titles, after) for trace in lists[0]],
            "after": [_list_document(trace, titles, before) for trace in lists[1]],
            "moves": sorted(moves, key=_sort_key),
        }

    def open_setting(self, setting: Setting) -> tuple[System, list[Control]]:
        """The system of a setting, and its controls.

        Raises:
            ConfigError: A value that breaks a rule, or is outside its range.
        """
        system = self.panel.builder.build_system(setting)
        return system, self.panel.list_controls(setting, system)

    @cached_property
    def judge_warnings(self) -> tuple[str, ...]:
        """Warnings about a machine judge of the dataset; empty if people judged."""
        systems = self.experiment.systems.values()
        return tuple(each.text for each in find_dataset_warnings(self.dataset, systems))

    def _unjudged(self, system: System) -> float:
        """The mean share of unjudged documents among a system's first 10."""
        runs, measure = self.evaluator.runs, self.evaluator.measures[0]
        return exact_mean(measure_unjudged(system, runs, [measure])[0].share)
