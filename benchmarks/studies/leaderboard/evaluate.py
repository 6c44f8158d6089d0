"""A row of a collection: evaluated, tuned out of fold, or the floor."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from benchmarks.studies.leaderboard.cells import (
    Budget,
    Cell,
    CollectionHead,
    Row,
    cell_path,
    make_fingerprint,
    read_cell,
    write_record,
)
from benchmarks.studies.leaderboard.methods import BASELINE, MEASURE, Lists, fusion_systems
from benchmarks.studies.leaderboard.rows import CONVEX, tuned_name
from fusion_bench.checks.unjudged import judgment_kind, measure_unjudged
from fusion_bench.config.parameters import Params
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, prepare_dataset
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.settings import ParameterRange
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.measures import Measure, compute_measures, parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.tune.cross_fitting import CrossFit, cross_fit
from fusion_bench.tune.objective import TuningObjective, source_roles
from fusion_bench.tune.sensitivity import sample_uniformly
from fusion_bench.tune.space import build_search_space
from fusion_bench.tune.trial_selection import assign_folds, evaluate_in_batches

#: Cormack's measure, for the curve over k.
AVERAGE_PRECISION: Final = "AP@100"
#: Each list is cut at this rank: some methods look at all pairs of candidates.
LIST_DEPTH: Final = 100
JUDGED: Final = MEASURE.with_judged_only().name
#: The primary measure with the mean gain of judged documents in place of unjudged ones.
FILLED: Final = f"{MEASURE.name}, filled"
#: Random orders that the floor is the mean of.
ORDERS: Final = 20


@dataclass(frozen=True, eq=False)
class Material:
    """A collection, loaded: what its rows are evaluated on.

    Attributes:
        task: The dataset, cut to the evaluated queries.
        lists: What the dataset has.
        fingerprint: Of its data.
    """

    task: EvaluationSet
    lists: Lists
    fingerprint: str

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The primary measure, the same over judged documents only, and Cormack's."""
        relevance = self.task.dataset.spec.binary_relevance
        precision = parse_measure(AVERAGE_PRECISION, binary_relevance=relevance)
        return (MEASURE, MEASURE.with_judged_only(), precision)

    def head(self, rows: Sequence[Row], budget: Budget) -> CollectionHead:
        """What the rows have in common."""
        return CollectionHead(
            name=self.task.dataset.name,
            fingerprint=self.fingerprint,
            queries=self.task.runs.queries,
            groups=self.task.runs.groups,
            sources=tuple(self.lists.roles),
            reranker=next(iter(self.lists.spaces), ""),
            judgments=judgment_kind(self.task.dataset, self.task.runs.queries),
            rows=tuple(rows),
            budget=budget,
        )


def load_material(path: Path) -> Material:
    """Load a collection with all its lists, cut; of the ``test`` split if it has one."""
    lists = Lists.of_spec(read_spec(path)[0])
    dataset = load_dataset(path)
    systems = {"rrf": {"runs": list(lists.roles)}}
    data = {"dataset": dataset.name, "baseline": "rrf", "systems": systems}
    task = prepare_dataset(Experiment.model_validate(data), Source(path, data), dataset)
    runs = task.runs.restrict(list(lists.roles), dict.fromkeys(lists.roles, LIST_DEPTH))
    return Material(replace(task, runs=runs), lists, f"{dataset.fingerprint} to rank {LIST_DEPTH}")


def evaluate_row(material: Material, row: Row, budget: Budget) -> Cell:
    """The cell of a row; ``skipped`` says why it has no values."""
    started = time.perf_counter()
    values: FloatArray = np.zeros((0, 0))
    chosen: tuple[dict[str, Any], ...] = ()
    null: FloatArray = np.zeros(0)
    skipped = ""
    names = (MEASURE.name, JUDGED, AVERAGE_PRECISION, FILLED)
    try:
        if row.kind == "floor":
            values = _random_order_values(material, budget.seed)
        elif row.kind == "tuned":
            values, chosen, fit = _tune(material, row, budget)
            null = fit.null[1:]
        elif row.kind == "tuned pair":
            fit = _tune_pair(material, row, budget)
            values, null = fit.values[None], fit.null[1:]
        else:
            values = _evaluate(material, _build_system(row))
    except FusionBenchError as error:
        skipped = str(error)
    return Cell(
        fingerprint=fingerprint_row(material.fingerprint, row, budget),
        row=row,
        values=dict(zip(names, (tuple(each) for each in values.tolist()), strict=False)),
        chosen=chosen,
        null=tuple(np.round(null, 4).tolist()),
        skipped=skipped,
        seconds=round(time.perf_counter() - started, 3),
    )


def fingerprint_row(data: str, row: Row, budget: Budget) -> str:
    """Of all that decides a row's values; ``data`` is the collection's fingerprint."""
    try:
        resolved = _build_system(row).resolved_config if row.config else {}
    except FusionBenchError:
        resolved = {}
    return make_fingerprint(data, row, resolved, budget)


def finish_row(material: Material, row: Row, budget: Budget, folder: Path) -> tuple[Cell, bool]:
    """The stored cell if it still holds, else a new one, which is stored; whether it is new."""
    path = cell_path(folder, row.name)
    stored = read_cell(path)
    wanted = fingerprint_row(material.fingerprint, row, budget)
    if stored is not None and not stored.skipped and stored.fingerprint == wanted:
        return stored, False
    cell = evaluate_row(material, row, budget)
    write_record(path, cell)
    return cell, True


def _build_system(row: Row) -> System:
    return System(name=row.name, **row.config)


def _evaluate(material: Material, system: System) -> FloatArray:
    """(M + 1, Q): values of each measure, and the filled values of the first."""
    runs = material.task.runs
    primary, _, precision = material.measures
    measures = (primary, precision)
    [scores] = evaluate_systems([system], runs, measures)
    [unjudged] = measure_unjudged(system, runs, [primary])
    filled = unjudged.filled
    if filled is None:
        raise TypeError(f"{primary.name} has no formula for unjudged documents")
    return np.vstack([scores.values[0], unjudged.judged_only, scores.values[1], filled])


def _tune(
    material: Material, row: Row, budget: Budget
) -> tuple[FloatArray, tuple[dict[str, Any], ...], CrossFit]:
    """(M + 1, Q), each query's with the parameters that the other folds chose; these; the test.

    The trials are random, so that the test can choose among them anew in every flip. It is that of
    the row − the baseline.
    """
    trials = _evaluate_trials(material, row, budget)
    baseline = _evaluate(material, _build_system(_baseline_row(material)))[0]
    fit = _cross_fit(material, budget, trials, offset=trials.values[0] - baseline)
    chosen = [trials.params[t] if t >= 0 else trials.params[0] for t in fit.chosen.tolist()]
    by_fold = np.array(
        [_evaluate(material, trials.objective.build_system(each)) for each in chosen]
    )
    fold = _deal_folds(material, budget)
    values: FloatArray = np.take_along_axis(by_fold, fold[None, None, :], axis=0)[0]
    return values, tuple(dict(params) for params in chosen), fit


def _tune_pair(material: Material, row: Row, budget: Budget) -> CrossFit:
    """The tuned row − the tuned baseline, both chosen anew in every flip."""
    first, second = (
        _evaluate_trials(material, each, budget)
        for each in (row.model_copy(update={"name": CONVEX}), _baseline_row(material))
    )
    offset, rival = first.values[0] - second.values[0], second.values - second.values[0]
    return _cross_fit(material, budget, first, offset=offset, rival=rival)


def _baseline_row(material: Material) -> Row:
    return Row(
        name=BASELINE,
        kind="method",
        config=dict(fusion_systems(material.lists, trained=False)[BASELINE]),
    )


class _Trials(NamedTuple):
    """The default and random parameters of a method.

    Attributes:
        objective: That they are of.
        params: The default first.
        values: Shape (T, Q): of the primary measure.
    """

    objective: TuningObjective
    params: list[Params]
    values: FloatArray


def _evaluate_trials(material: Material, row: Row, budget: Budget) -> _Trials:
    objective = _make_objective(material, row)
    sample = sample_uniformly(objective.parameters, budget.trials, seed=budget.seed)
    params = [objective.default_params, *map(objective.normalize_weights, sample)]
    values = evaluate_in_batches(objective, params)
    kept = np.flatnonzero(np.isfinite(values).all(axis=1)).tolist()
    if not kept:
        _evaluate(material, objective.build_system(params[0]))  # raises what is wrong with it
        raise ConfigError(f"{row.name}: no parameters of {budget.trials} could be evaluated")
    return _Trials(objective, [params[t] for t in kept], values[kept])


def _cross_fit(
    material: Material,
    budget: Budget,
    trials: _Trials,
    *,
    offset: FloatArray,
    rival: FloatArray | None = None,
) -> CrossFit:
    return cross_fit(
        trials.values - trials.values[0],
        _deal_folds(material, budget),
        list(material.task.runs.groups),
        flips=budget.flips,
        seed=budget.seed,
        offset=offset,
        rival=rival,
    )


def _make_objective(material: Material, row: Row) -> TuningObjective:
    """All that the method declares is tuned; of convex fusion the weights alone."""
    system, runs = _build_system(row), material.task.runs
    narrowed: dict[str, ParameterRange | Literal["own"]] = {"fusion.weights": "own"}
    ranges = narrowed if row.name in {CONVEX, tuned_name(CONVEX)} else None
    parameters = build_search_space(system, ranges, source_roles(system, runs))
    return TuningObjective(system, runs, MEASURE, parameters, contents=Fingerprint({}))


def _deal_folds(material: Material, budget: Budget) -> IntArray:
    runs = material.task.runs
    folds = min(budget.folds, len(set(runs.groups)))
    return assign_folds(runs.groups, runs.types, folds=folds, split_seed=str(budget.seed))


def _random_order_values(material: Material, seed: int) -> FloatArray:
    """(M, Q): the mean over random orders of all candidates."""
    runs, generator = material.task.runs, np.random.default_rng(seed)
    total = np.zeros((len(material.measures), len(runs.queries)))
    for _ in range(ORDERS):
        positions = np.zeros(len(runs.documents), dtype=np.int64)
        for start, end in zip(runs.offsets[:-1], runs.offsets[1:], strict=True):
            positions[start:end] = generator.permutation(int(end - start)) + 1
        total += compute_measures(material.measures, runs, positions)
    return np.asarray(total / ORDERS)
