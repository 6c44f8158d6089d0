"""Tuning with fusion_bench and with the grids of other tools, on the same splits.

fusion_bench searches normalizer, method, weights and blend together. The others search the grids
of ``benchmarks.studies.rivals``; ranx's ``optimize_fusion`` also runs itself. A dataset without
splits is split by several salts: a query counts with its mean over the salts that held it out.
Differences are paired by query; intervals are clustered by group.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.tuning
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from benchmarks.collections import COLLECTIONS, Collection, build_objective, load_collection
from benchmarks.studies.ranx_itself import (
    METHODS,
    compile_ranx,
    read_choices,
    run_ranx,
    write_choices,
)
from benchmarks.studies.rivals import RANX, RIVALS, Rival
from benchmarks.studies.study import parse_options
from benchmarks.studies.tuning_table import (
    DEFAULT,
    FUSION_BENCH,
    RANX_ITSELF,
    format_table,
    write_records,
)
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.query_splits import QuerySplit, dataset_split, hashed_split
from fusion_bench.experiment.settings import ParameterRange, SelectionRule, TuneSettings
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import run_search
from fusion_bench.tune.trial_selection import choose_trial

#: Salts where the dataset has no splits of its own: more where there are few queries.
SALTS: Mapping[str, int] = {"jqara": 1, "codec": 16, "trec-dl-2019": 16, "nfcorpus": 4, "toy": 2}
#: Splits on which the real optimize_fusion runs: each takes a minute or more.
RANX_SPLITS = 3


@dataclass(frozen=True, eq=False)
class Tool:
    """The quality and cost of one tool's choices.

    Attributes:
        name: The tool.
        values: Shape (S, Q): each query under the choice of each split; NaN = a tuning query, or a
            split without a run.
        wall: Seconds of one tuning run.
        cpu: CPU seconds of it.
        tried: Number of evaluated settings.
        chosen: The choice of each split.
    """

    name: str
    values: FloatArray
    wall: float
    cpu: float
    tried: int
    chosen: tuple[str, ...]


class Clock:
    """Sum of the wall and CPU seconds of its ``with`` blocks."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter() - self._start[0]
        self.cpu += time.process_time() - self._start[1]


def split_queries(collection: Collection) -> list[QuerySplit]:
    """The dataset's own, or one a salt."""
    runs = collection.runs
    split = dataset_split(runs.queries, collection.queries)
    if split is not None:
        return [split]
    salts = range(SALTS[collection.name])
    return [hashed_split(runs.groups, runs.types, split_seed=str(salt)) for salt in salts]


def drop_unused_queries(collection: Collection) -> Collection:
    """The collection without queries that are in no part of a split."""
    used = np.any([split.tune | split.held_out for split in split_queries(collection)], axis=0)
    if used.all():
        return collection
    runs, lists = (part.subset(used) for part in (collection.runs, collection.all_lists))
    return replace(collection, runs=runs, all_lists=lists)


def make_objective(collection: Collection) -> TuningObjective:
    """RRF with k = 60 (the reranker over its first 50); all parameters are tuned."""
    ranges: dict[str, Any] = {"fusion.method": ParameterRange(choices=("rrf", "weighted_score"))}
    blend = None
    if collection.runs.rerankers:
        reranker = collection.runs.rerankers[0]
        blend = {"method": "replace", "reranker": reranker, "missing": "below"}
        methods = ("replace", "linear", "position_aware")
        ranges["blend.method"] = ParameterRange(choices=("none", *methods))
        deep = {"low": 10, "high": 200, "int": True, "log": True}
        ranges["blend.depth"] = ParameterRange.model_validate(
            {**deep, "when": {"blend.method": methods}}
        )
    return build_objective(collection, blend=blend, parameters=ranges)


def keep_held_out(every: Sequence[QuerySplit], chosen: Sequence[FloatArray]) -> FloatArray:
    """(S, Q): NaN for tuning queries, and for splits without a choice."""
    out = np.full((len(every), len(every[0].tune)), np.nan)
    for row, split, values in zip(out, every, chosen, strict=False):
        row[split.held_out] = values[split.held_out]
    return out


def tune_with_fusion_bench(
    objective: TuningObjective, every: Sequence[QuerySplit], trials: int
) -> list[Tool]:
    """The default, and the choice of each selection rule; the default rule comes first."""
    settings = TuneSettings(system="default", trials=trials).search_settings()
    clock, studies = Clock(), []
    for split in every:
        with clock:
            studies.append(run_search(objective, split.tune, settings))
    tried = max(len(study.trials) for study in studies)
    default = objective.evaluate_params([objective.default_params])[0]
    tools = [Tool(DEFAULT, keep_held_out(every, [default] * len(every)), 0.0, 0.0, 1, ())]
    for rule in get_args(SelectionRule):
        choosing, params = Clock(), []
        for split, study in zip(every, studies, strict=True):
            with choosing:
                params.append(choose_trial(objective, study, split.tune, rule).params)
        values = keep_held_out(every, [objective.evaluate_params([each])[0] for each in params])
        wall = (clock.wall + choosing.wall) / len(every)
        cpu = (clock.cpu + choosing.cpu) / len(every)
        chosen = tuple(str(dict(each)) for each in params)
        tools.append(Tool(FUSION_BENCH[rule], values, wall, cpu, tried, chosen))
    return tools


def search_grid(
    rival: Rival, collection: Collection, every: Sequence[QuerySplit]
) -> Iterator[Tool]:
    """The choices of a grid, which is evaluated once for all splits."""
    clock = Clock()
    with clock:
        names, rows = zip(*rival.variants(collection), strict=True)
    values = np.array(rows)
    best = [rival.choose(values, split.tune) for split in every]
    chosen = tuple(names[n] for n in best)
    if rival is RANX:
        yield tune_with_ranx(collection, every, dict(zip(names, values, strict=True)), chosen)
    held_out = keep_held_out(every, [values[n] for n in best])
    yield Tool(rival.name, held_out, clock.wall, clock.cpu, len(names), chosen)


def tune_with_ranx(
    collection: Collection,
    every: Sequence[QuerySplit],
    variants: Mapping[str, FloatArray],
    expected: Sequence[str],
) -> Tool:
    """The real optimize_fusion on the first splits; fusion_bench evaluates its choices."""
    choices = read_choices(collection.name)
    if not choices:
        is_real = collection.name in COLLECTIONS
        methods = METHODS if is_real else METHODS[-1:]
        if is_real:
            compile_ranx(collection)
        choices = [run_ranx(collection, split.tune, methods) for split in every[:RANX_SPLITS]]
        if is_real:
            write_choices(collection.name, choices)
    names = tuple(choice.name for choice in choices)
    same = sum(a == b for a, b in zip(names, expected, strict=False))
    print(f"{collection.name}: ranx and its grid agree on {same} of {len(names)} splits")
    wall, cpu = (float(np.mean([getattr(c, key) for c in choices])) for key in ("wall", "cpu"))
    values = keep_held_out(every, [variants[name] for name in names])
    return Tool(RANX_ITSELF, values, wall, cpu, len(variants), names)


def mean_over_splits(values: FloatArray) -> FloatArray:
    """(Q,): the mean over the splits that held a query out; NaN = none did."""
    seen = np.isfinite(values).any(axis=0)
    out = np.full(values.shape[1], np.nan)
    out[seen] = np.nanmean(values[:, seen], axis=0)
    return out


def difference(a: Tool, b: Tool, collection: Collection) -> MeanEstimate:
    """Mean of a − b with its interval, over the splits of both."""
    gaps = mean_over_splits(a.values - b.values)
    known = np.isfinite(gaps)
    return estimate_mean(gaps[known], number_by_appearance(collection.runs.groups)[0][known])


def compare_tools(name: str, trials: int) -> Iterator[dict[str, Any]]:
    """One record a tool."""
    collection = drop_unused_queries(load_collection(name))
    every = split_queries(collection)
    tools = tune_with_fusion_bench(make_objective(collection), every, trials)
    tools += [tool for rival in RIVALS for tool in search_grid(rival, collection, every)]
    for tool in tools:
        gap = difference(tools[1], tool, collection)
        yield {
            "collection": name,
            "queries": int(np.isfinite(mean_over_splits(tool.values)).sum()),
            "tuning": int(np.mean([split.tune.sum() for split in every])),
            "splits": int(np.isfinite(tool.values).any(axis=1).sum()),
            "tool": tool.name,
            "held_out": float(np.nanmean(mean_over_splits(tool.values))),
            "difference": gap.mean,
            "low": gap.low,
            "high": gap.high,
            "wall": tool.wall,
            "cpu": tool.cpu,
            "tried": tool.tried,
            "chosen": tool.chosen,
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything and write the table."""
    options = parse_options(arguments, __doc__, {"trials": 200}, {"trials": 6})
    for name in ["toy"] if options.toy else COLLECTIONS:
        if options.only in name:
            records = list(compare_tools(name, options.trials))
            print(format_table(records), flush=True)
            if options.write:
                write_records(records)


if __name__ == "__main__":
    main()
