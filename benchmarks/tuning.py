"""Tuned here and by the rules of other tools: the same queries to tune on, the same held out.

Ours searches normalizer, method, weights and blend together; the others search their own grids (see
``benchmarks.rivals``), and ranx's ``optimize_fusion`` runs itself too. Where a dataset has no
splits of its own, several salts split it, and each query counts with its mean over the salts that
held it out. Differences are paired by query, intervals go by group.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.tuning
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from benchmarks.collections import COLLECTIONS, Collection, problem
from benchmarks.ranx_itself import forget, optimized, record, recorded, warm_up
from benchmarks.rivals import RANX, RIVALS, Rival
from benchmarks.tuning_table import DEFAULT, OURS, RANX_ITSELF, renew, table
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray
from fusion_bench.experiment.tune_settings import ParameterRange, SelectionRule, TuneSettings
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean
from fusion_bench.tune.search.search import run_search
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.splits import QuerySplit, dataset_split, hashed_split
from fusion_bench.tune.validation.trial_selection import choose_trial

#: Salts where the dataset has no splits of its own: more where there are few queries.
SALTS: Mapping[str, int] = {"jqara": 1, "codec": 16, "trec-dl-2019": 16, "nfcorpus": 4}
#: So many of the splits the real optimize_fusion is run on: it takes a minute or more for each.
MOST_RANX = 3


@dataclass(frozen=True, eq=False)
class Tool:
    """What one tool's choices are worth, and what they cost.

    Attributes:
        name: The tool.
        values: Shape (S, Q): each query under what was chosen on each split; NaN = tuned on, or
            the split was not gone through.
        wall: Seconds of one tuning run.
        cpu: CPU seconds of it.
        tried: Settings it went through.
        chosen: What it took on each split.
    """

    name: str
    values: FloatArray
    wall: float
    cpu: float
    tried: int
    chosen: tuple[str, ...]


class Clock:
    """Wall and CPU seconds of what is done under it, over all times that it ran."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def __enter__(self) -> None:
        self._from = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter() - self._from[0]
        self.cpu += time.process_time() - self._from[1]


def splits(collection: Collection) -> list[QuerySplit]:
    """The dataset's own, or one a salt."""
    runs = collection.runs
    own = dataset_split(runs.queries, collection.queries)
    if own is not None:
        return [own]
    salts = range(SALTS[collection.name])
    return [hashed_split(runs.groups, runs.types, split_seed=str(salt)) for salt in salts]


def taking_part(collection: Collection) -> Collection:
    """Without queries that are neither tuned on nor held out."""
    used = np.any([split.tune | split.held_out for split in splits(collection)], axis=0)
    if used.all():
        return collection
    runs, lists = (part.subset(used) for part in (collection.runs, collection.all_lists))
    return replace(collection, runs=runs, all_lists=lists)


def asked(collection: Collection) -> TuningObjective:
    """RRF with k = 60 (the reranker over its first 50); everything that bears on it is tuned."""
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
    return problem(collection, blend=blend, parameters=ranges)


def held_out(every: Sequence[QuerySplit], found: Sequence[FloatArray]) -> FloatArray:
    """(S, Q): NaN where a query was tuned on, and all along splits beyond those found."""
    out = np.full((len(every), len(every[0].tune)), np.nan)
    for row, split, values in zip(out, every, found, strict=False):
        row[split.held_out] = values[split.held_out]
    return out


def ours(asked_for: TuningObjective, every: Sequence[QuerySplit], trials: int) -> list[Tool]:
    """The default, and what a search makes of it by each rule of choice, the product's first."""
    settings = TuneSettings(system="default", trials=trials).search_settings()
    clock, studies = Clock(), []
    for split in every:
        with clock:
            studies.append(run_search(asked_for, split.tune, settings))
    tried = max(len(study.trials) for study in studies)
    default = asked_for.evaluate_params([asked_for.default_params])[0]
    tools = [Tool(DEFAULT, held_out(every, [default] * len(every)), 0.0, 0.0, 1, ())]
    for rule in get_args(SelectionRule):
        own, params = Clock(), []
        for split, study in zip(every, studies, strict=True):
            with own:
                params.append(choose_trial(asked_for, study, split.tune, rule).params)
        values = held_out(every, [asked_for.evaluate_params([one])[0] for one in params])
        wall, cpu = (
            (a + b) / len(every) for a, b in ((clock.wall, own.wall), (clock.cpu, own.cpu))
        )
        tools.append(
            Tool(OURS[rule], values, wall, cpu, tried, tuple(str(dict(p)) for p in params))
        )
    return tools


def theirs(rival: Rival, collection: Collection, every: Sequence[QuerySplit]) -> Iterator[Tool]:
    """What a grid makes of it; the grid is computed once, as it does not depend on the split."""
    clock = Clock()
    with clock:
        names, rows = zip(*rival.variants(collection), strict=True)
    values = np.array(rows)
    picked = [rival.choose(values, split.tune) for split in every]
    found = held_out(every, [values[p] for p in picked])
    taken = tuple(names[p] for p in picked)
    if rival is RANX:
        yield itself(collection, every, dict(zip(names, values, strict=True)), taken)
    yield Tool(rival.name, found, clock.wall, clock.cpu, len(names), taken)


def itself(
    collection: Collection,
    every: Sequence[QuerySplit],
    variants: Mapping[str, FloatArray],
    copied: Sequence[str],
) -> Tool:
    """The real optimize_fusion on the first splits; what it chooses is evaluated on our engine."""
    found = recorded(collection.name)
    if not found:
        warm_up(collection)
        found = [optimized(collection, split.tune) for split in every[:MOST_RANX]]
        record(collection.name, found)
    names = tuple(one.name for one in found)
    same = sum(a == b for a, b in zip(names, copied, strict=False))
    print(f"{collection.name}: ranx itself chose as our copy of its grid on {same} of {len(found)}")
    wall, cpu = (float(np.mean([getattr(one, key) for one in found])) for key in ("wall", "cpu"))
    values = held_out(every, [variants[name] for name in names])
    return Tool(RANX_ITSELF, values, wall, cpu, len(variants), names)


def means(values: FloatArray) -> FloatArray:
    """(Q,): the mean over the splits that held a query out; NaN = none did."""
    seen = np.isfinite(values).any(axis=0)
    out = np.full(values.shape[1], np.nan)
    out[seen] = np.nanmean(values[:, seen], axis=0)
    return out


def difference(a: Tool, b: Tool, collection: Collection) -> MeanEstimate:
    """Mean of a − b with its interval, on the splits that both went through."""
    gaps = means(a.values - b.values)
    there = np.isfinite(gaps)
    return estimate_mean(gaps[there], number_by_appearance(collection.runs.groups)[0][there])


def compared(name: str, trials: int) -> Iterator[dict[str, Any]]:
    """One record a tool."""
    collection = taking_part(COLLECTIONS[name]())
    every = splits(collection)
    tools = ours(asked(collection), every, trials)
    tools += [tool for rival in RIVALS for tool in theirs(rival, collection, every)]
    for tool in tools:
        gap = difference(tools[1], tool, collection)
        yield {
            "collection": name,
            "queries": int(np.isfinite(means(tool.values)).sum()),
            "tuning": int(np.mean([split.tune.sum() for split in every])),
            "splits": int(np.isfinite(tool.values).any(axis=1).sum()),
            "tool": tool.name,
            "held_out": float(np.nanmean(means(tool.values))),
            "ours_minus": gap.mean,
            "low": gap.low,
            "high": gap.high,
            "wall": tool.wall,
            "cpu": tool.cpu,
            "tried": tool.tried,
            "chosen": tool.chosen,
        }


def main() -> None:
    """Run everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--only", default="", help="only this collection")
    parser.add_argument("--write", action="store_true", help="renew tuning.json and docs/tuning.md")
    parser.add_argument("--ranx", action="store_true", help="run optimize_fusion again (slow)")
    given = parser.parse_args()
    if given.ranx:
        forget(given.only)
    for name in COLLECTIONS:
        if given.only in name:
            found = list(compared(name, given.trials))
            print(table(found), flush=True)
            if given.write:
                renew(found)


if __name__ == "__main__":
    main()
