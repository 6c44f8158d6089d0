"""The rows of a collection: evaluated, tuned out of fold, or the floor.

What is stored and still holds is not computed again.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from benchmarks.leaderboard.cross_fitting import CrossFit, cross_fit
from benchmarks.leaderboard.records import (
    FORMAT_VERSION,
    HEAD,
    TUNED,
    Cell,
    CollectionHead,
    ListFacts,
    SystemRow,
    TuningBudget,
    cell_path,
    read_cell,
    write_record,
)
from benchmarks.leaderboard.rows import (
    BASELINE,
    CONVEX,
    MEASURE,
    Lists,
    Methods,
    list_fusions,
    list_rows,
    tuned_name,
)
from fusion_bench._version import ENGINE, __version__
from fusion_bench.checks.unjudged import judgment_kind, measure_unjudged
from fusion_bench.config.parameters import Params
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.query_splits import assign_folds
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, prepare_dataset
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.settings import ParameterRange
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_config import DatasetSpec, read_spec
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.measures import compute_measures, parse_measure
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.ranking.system_ranking import rank_candidates
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.tune.objective import TuningObjective, source_roles
from fusion_bench.tune.sensitivity import sample_uniformly
from fusion_bench.tune.space import build_search_space
from fusion_bench.tune.trial_selection import evaluate_in_batches
from fusion_bench.util.digests import digest_json
from fusion_bench.util.formatting import Progress, ignore_progress

#: Each list is cut at this rank: some methods look at all pairs of candidates.
LIST_DEPTH: Final = 100
JUDGED_ONLY: Final = MEASURE.with_judged_only().name
#: The primary measure with the mean gain of judged documents in place of unjudged ones.
FILLED: Final = f"{MEASURE.name}, filled"
#: The share of judged documents in the top 10.
JUDGED: Final = parse_measure("Judged@10")
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

    def head(self, rows: Sequence[SystemRow], budget: TuningBudget) -> CollectionHead:
        """What the rows have in common."""
        runs, dataset = self.task.runs, self.task.dataset
        return CollectionHead(
            name=dataset.name,
            fingerprint=self.fingerprint,
            queries=_salted_digests(self.fingerprint, runs.queries),
            groups=_salted_digests(self.fingerprint, runs.groups),
            lists=tuple(_describe_list(runs, name) for name in self.lists.roles),
            reranker=next(iter(self.lists.spaces), ""),
            judgments=judgment_kind(dataset, runs.queries),
            judge=_name_judge(dataset.spec),
            rows=tuple(rows),
            budget=budget,
        )


def _name_judge(spec: DatasetSpec) -> str:
    if spec.qrels is None or "kind" not in spec.qrels.model_fields_set:
        return "not declared"
    return "a model" if spec.is_judged_by_machine else "people"


def _describe_list(runs: AlignedRuns, name: str) -> ListFacts:
    """Depth of a list, and whether its scores are more than one number a rank."""
    row = runs.sources.index(name)
    ranks, scores = runs.ranks[row], runs.scores[row]
    order = np.argsort(ranks, kind="stable")
    order = order[ranks[order] > 0]
    same = ranks[order][1:] == ranks[order][:-1]
    is_scored = bool((scores[order][1:] != scores[order][:-1])[same].any())
    return ListFacts(name=name, depth=int(ranks.max(initial=0)), is_scored=is_scored)


def load_material(path: Path) -> Material:
    """Load a collection with all its lists, cut; of the ``test`` split if it has one."""
    lists = Lists.of_spec(read_spec(path)[0])
    if len(lists.roles) < 2:
        raise ConfigError(f"{path}: a leaderboard fuses two lists or more, and runs has fewer")
    dataset = load_dataset(path)
    systems = {BASELINE: {"runs": list(lists.roles)}}
    data = {"dataset": dataset.name, "baseline": BASELINE, "systems": systems}
    task = prepare_dataset(Experiment.model_validate(data), Source(path, data), dataset)
    runs = task.runs.restrict(list(lists.roles), dict.fromkeys(lists.roles, LIST_DEPTH))
    return Material(replace(task, runs=runs), lists, f"{dataset.fingerprint} to rank {LIST_DEPTH}")


def run_collections(
    paths: Sequence[Path],
    folder: Path,
    budget: TuningBudget,
    *,
    jobs: int = 1,
    methods: Methods = "all",
    progress: Progress = ignore_progress,
) -> Counter[str]:
    """Finish every row of every collection.

    Args:
        paths: The ``dataset.yaml`` of each.
        folder: Where the cells are stored, in a folder a collection.
        budget: Of tuned rows.
        jobs: Processes.
        methods: Which rows.
        progress: Called after each row.

    Returns:
        How many rows were computed, reused and skipped.
    """
    counts: Counter[str] = Counter()
    _material.cache_clear()  # the files may have changed, or a campaign may hold out queries now
    for path in paths:
        material = _material(path)
        name, rows = material.task.dataset.name, list_rows(material.lists, methods)
        write_record(folder / name / HEAD, material.head(rows, budget))
        finished = _finish_rows(path, rows, folder / name, budget, jobs)
        for number, (cell, is_new) in enumerate(finished, start=1):
            counts["skipped" if cell.skipped else "computed" if is_new else "reused"] += 1
            progress(f"{name}: {cell.row.name}", number, len(rows))
    return counts


def _finish_rows(
    path: Path, rows: Sequence[SystemRow], folder: Path, budget: TuningBudget, jobs: int
) -> Iterator[tuple[Cell, bool]]:
    if jobs == 1:
        yield from (_finish_row(_material(path), row, budget, folder) for row in rows)
        return
    # A process each has one thread: together they use the processors once.
    os.environ["FUSION_BENCH_THREADS"] = "1"
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(_finish_in_process, path, row, budget, folder) for row in rows]
        try:
            yield from (task.result() for task in as_completed(tasks))
        finally:  # what is interrupted ends with the rows that are being computed
            pool.shutdown(cancel_futures=True)


def _finish_in_process(
    path: Path, row: SystemRow, budget: TuningBudget, folder: Path
) -> tuple[Cell, bool]:
    return _finish_row(_material(path), row, budget, folder)


@lru_cache(maxsize=1)
def _material(path: Path) -> Material:
    """The collection that a process works on."""
    return load_material(path)


def evaluate_row(material: Material, row: SystemRow, budget: TuningBudget) -> Cell:
    """The cell of a row; ``skipped`` says why it has no values."""
    started = time.perf_counter()
    found: dict[str, Any] = {}
    try:
        found = _evaluate_kind(material, row, budget)
    except FusionBenchError as error:
        found = {"skipped": str(error)}
    fingerprint = fingerprint_row(material.fingerprint, row, budget)
    seconds = round(time.perf_counter() - started, 3)
    return Cell(fingerprint=fingerprint, row=row, seconds=seconds, **found).seal()


def _evaluate_kind(material: Material, row: SystemRow, budget: TuningBudget) -> dict[str, Any]:
    """The fields of a cell that its kind has."""
    if row.kind == "floor":
        return {"values": {MEASURE.name: _random_order_values(material, budget.seed)}}
    if row.kind == "tuned pair":
        fit, chosen = _fit_pair(material, row, budget)
        values = {MEASURE.name: tuple(fit.values.tolist())}
        return {"values": values, "chosen": chosen, "null": _round_null(fit)}
    if row.kind in {"tuned", "chosen"}:
        return _fit_out_of_fold(material, row, budget)
    system = _build_system(row)
    coverage = _measure_coverage(material, row) if row.kind == "reranked" else None
    return {"values": _evaluate(material, system), "coverage": coverage}


def _round_null(fit: CrossFit) -> tuple[float, ...]:
    return tuple(np.round(fit.null[1:], 4).tolist())


def fingerprint_row(data: str, row: SystemRow, budget: TuningBudget) -> str:
    """SHA-256 over all that decides a row's values.

    Args:
        data: The collection's fingerprint.
        row: What is evaluated, and its configuration with every default.
        budget: Counts for tuned rows alone; the seed for all.
    """
    try:
        resolved = _build_system(row).resolved_config if row.config else {}
    except FusionBenchError:
        resolved = {}
    limits = budget.model_dump() if row.kind in TUNED else {"seed": budget.seed}
    content = row.model_dump(mode="json")
    return digest_json([data, __version__, ENGINE, FORMAT_VERSION, content, resolved, limits])


def _finish_row(
    material: Material, row: SystemRow, budget: TuningBudget, folder: Path
) -> tuple[Cell, bool]:
    """The stored cell if it still holds, else a new one, which is stored; whether it is new."""
    path = cell_path(folder, row.name)
    stored = read_cell(path)
    wanted = fingerprint_row(material.fingerprint, row, budget)
    if stored is not None and not stored.skipped and stored.fingerprint == wanted:
        return stored, False
    cell = evaluate_row(material, row, budget)
    write_record(path, cell)
    return cell, True


def _build_system(row: SystemRow) -> System:
    return System(name=row.name, **row.config)


def _evaluate(material: Material, system: System) -> dict[str, tuple[float, ...]]:
    """Each measure → value of each query; what unjudged documents could change, where it can."""
    runs = material.task.runs
    [scores] = evaluate_systems([system], runs, (MEASURE, JUDGED))
    values = {MEASURE.name: scores.values[0], JUDGED.name: scores.values[1]}
    if material.task.judgment_kind != "complete":
        [unjudged] = measure_unjudged(system, runs, [MEASURE])
        values[JUDGED_ONLY] = unjudged.judged_only
        values |= {} if unjudged.filled is None else {FILLED: unjudged.filled}
    return {name: tuple(each.tolist()) for name, each in values.items()}


def _measure_coverage(material: Material, row: SystemRow) -> float:
    """The share of the documents that a reranker should order which it scored."""
    plain = _build_system(row).model_copy(update={"blend": NoBlend()})
    fused, blend = rank_candidates(plain, material.task.runs), row.config["blend"]
    is_ordered = (fused.positions > 0) & (fused.positions <= blend["depth"])
    scores = fused.runs.rerank[fused.runs.rerankers.index(blend["reranker"])]
    return float((~np.isnan(scores))[is_ordered].mean()) if is_ordered.any() else 0.0


def _fit_out_of_fold(material: Material, row: SystemRow, budget: TuningBudget) -> dict[str, Any]:
    """Each query's values with what the other folds chose; the choices; the test.

    The trials do not depend on the data, so that the test can choose among them anew in every
    flip. It is that of the row − the baseline.
    """
    trials = _evaluate_choices(material, row, budget)
    baseline = np.array(_evaluate(material, _baseline_system(material))[MEASURE.name])
    fit = _cross_fit(material, budget, trials, offset=trials.values[0] - baseline)
    chosen = [max(trial, 0) for trial in fit.chosen.tolist()]
    by_fold = [_evaluate(material, trials.build(trials.params[trial])) for trial in chosen]
    folds = _deal_folds(material, budget).tolist()
    values = {
        name: tuple(by_fold[fold][name][query] for query, fold in enumerate(folds))
        for name in by_fold[0]
    }
    params = tuple(dict(trials.params[trial]) for trial in chosen)
    return {"values": values, "chosen": params, "null": _round_null(fit)}


def _fit_pair(
    material: Material, row: SystemRow, budget: TuningBudget
) -> tuple[CrossFit, tuple[dict[str, Any], ...]]:
    """The tuned row − its rival, both chosen anew in every flip; what the row chose."""
    first = _evaluate_tuned(material, row, budget)
    if row.candidates:
        second = _evaluate_candidates(material, row)
    else:
        rival = SystemRow(name=tuned_name(BASELINE), kind="tuned", config=row.rival)
        second = _evaluate_tuned(material, rival, budget)
    offset, rivals = first.values[0] - second.values[0], second.values - second.values[0]
    fit = _cross_fit(material, budget, first, offset=offset, rival=rivals)
    return fit, tuple(dict(first.params[max(trial, 0)]) for trial in fit.chosen.tolist())


def _baseline_system(material: Material) -> System:
    keys = material.lists.fit_runs({"fusion": list_fusions()[BASELINE]})
    return System(name=BASELINE, **(keys or {}))


class _Choices(NamedTuple):
    """The default and other settings of a row.

    Attributes:
        params: The default first.
        values: Shape (T, Q): of the primary measure.
        build: The system of some parameters.
    """

    params: Sequence[Params]
    values: FloatArray
    build: Callable[[Params], System]


def _evaluate_choices(material: Material, row: SystemRow, budget: TuningBudget) -> _Choices:
    if row.kind == "chosen":
        return _evaluate_candidates(material, row)
    return _evaluate_tuned(material, row, budget)


def _evaluate_candidates(material: Material, row: SystemRow) -> _Choices:
    def build(keys: Params) -> System:
        return System.model_validate({"name": row.name, **keys})

    values = [_evaluate(material, build(keys))[MEASURE.name] for keys in row.candidates]
    return _Choices(row.candidates, np.array(values), build)


def _evaluate_tuned(material: Material, row: SystemRow, budget: TuningBudget) -> _Choices:
    objective = _make_objective(material, row)
    sample = sample_uniformly(objective.parameters, budget.trials, seed=budget.seed)
    params = [objective.default_params, *map(objective.normalize_weights, sample)]
    values = evaluate_in_batches(objective, params)
    kept = np.flatnonzero(np.isfinite(values).all(axis=1)).tolist()
    if not kept:
        _evaluate(material, objective.build_system(params[0]))  # raises what is wrong with it
        raise ConfigError(f"{row.name}: no parameters of {budget.trials} could be evaluated")
    return _Choices([params[t] for t in kept], values[kept], objective.build_system)


def _cross_fit(
    material: Material,
    budget: TuningBudget,
    trials: _Choices,
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


def _make_objective(material: Material, row: SystemRow) -> TuningObjective:
    """All that the method declares is tuned; of convex fusion the weights alone."""
    system, runs = _build_system(row), material.task.runs
    narrowed: dict[str, ParameterRange | Literal["own"]] = {"fusion.weights": "own"}
    is_convex = row.config["fusion"] == list_fusions()[CONVEX]
    ranges = narrowed if is_convex else None
    parameters = build_search_space(system, ranges, source_roles(system, runs))
    return TuningObjective(system, runs, MEASURE, parameters, contents=Fingerprint({}))


def _deal_folds(material: Material, budget: TuningBudget) -> IntArray:
    runs = material.task.runs
    folds = min(budget.folds, len(set(runs.groups)))
    return assign_folds(runs.groups, runs.types, folds=folds, split_seed=str(budget.seed))


def _random_order_values(material: Material, seed: int) -> tuple[float, ...]:
    """(Q,): the mean over random orders of all candidates."""
    runs, generator = material.task.runs, np.random.default_rng(seed)
    total = np.zeros(len(runs.queries))
    for _ in range(ORDERS):
        positions = np.zeros(len(runs.documents), dtype=np.int64)
        for start, end in zip(runs.offsets[:-1], runs.offsets[1:], strict=True):
            positions[start:end] = generator.permutation(int(end - start)) + 1
        total += compute_measures([MEASURE], runs, positions)[0]
    return tuple((total / ORDERS).tolist())


def _salted_digests(salt: str, ids: Iterable[str]) -> tuple[str, ...]:
    """The first 16 hexadecimal digits of SHA-256 over the salt and each id."""
    return tuple(hashlib.sha256(f"{salt}\0{each}".encode()).hexdigest()[:16] for each in ids)
