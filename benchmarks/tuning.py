"""Tuned here and by the rules of other tools: the same queries to tune on, the same held out.

Ours searches normaliser, method, weights and blend together; the others search their own grids (see
``benchmarks.rivals``). Where a dataset has no splits of its own, several salts split it, and each
query counts with its mean over the salts that held it out. Differences are paired by query,
intervals go by group.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.tuning
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.collections import COLLECTIONS, Collection, problem
from benchmarks.page import put
from benchmarks.rivals import RIVALS, Rival, ranx_itself
from fusion_bench.columns import factorize
from fusion_bench.order import FloatArray
from fusion_bench.statistics import Estimate, estimate
from fusion_bench.tune.problem import Problem
from fusion_bench.tune.procedure import choose
from fusion_bench.tune.search import search
from fusion_bench.tune.splits import Split, hashed_split, own_split
from fusion_bench.tuning import Range, Tuning

RESULTS = Path(__file__).parent / "tuning.json"
OURS, CAREFUL = "fusion_bench tune", "fusion_bench tune, one standard error"
DEFAULT = "default"
#: A tuned system that loses no more than this is as good.
MARGIN = 0.01
#: Salts where the dataset has no splits of its own: more where there are few queries.
SALTS: Mapping[str, int] = {"jqara": 1, "codec": 4, "trec-dl-2019": 8, "nfcorpus": 3}


@dataclass(frozen=True, eq=False)
class Tool:
    """What one tool's choices are worth, and what they cost.

    Attributes:
        name: The tool.
        values: Shape (Q,): mean over the splits that held a query out; NaN = none did.
        seconds: CPU seconds of one tuning run.
        tried: Settings it went through.
        chosen: What it took on the first split.
    """

    name: str
    values: FloatArray
    seconds: float
    tried: int
    chosen: str


def splits(collection: Collection) -> list[Split]:
    """The dataset's own, or one a salt."""
    runs = collection.runs
    own = own_split(runs.queries, collection.queries)
    if own is not None:
        return [own]
    salts = range(SALTS[collection.name])
    return [hashed_split(runs.groups, runs.types, salt=str(salt)) for salt in salts]


def taking_part(collection: Collection) -> Collection:
    """Without queries that are neither tuned on nor held out."""
    used = np.any([split.tune | split.held_out for split in splits(collection)], axis=0)
    if used.all():
        return collection
    runs, lists = (part.subset(used) for part in (collection.runs, collection.all_lists))
    return replace(collection, runs=runs, all_lists=lists)


def asked(collection: Collection) -> Problem:
    """RRF with k = 60 (the reranker over its first 50); everything that bears on it is tuned."""
    ranges: dict[str, Any] = {"fusion.method": Range(choices=("rrf", "weighted_score"))}
    blend = None
    if collection.runs.rerankers:
        reranker = collection.runs.rerankers[0]
        blend = {"method": "replace", "reranker": reranker, "missing": "below"}
        methods = ("replace", "linear", "position_aware")
        ranges["blend.method"] = Range(choices=("none", *methods))
        deep = {"low": 10, "high": 200, "int": True, "log": True}
        ranges["blend.depth"] = Range.model_validate({**deep, "when": {"blend.method": methods}})
    return problem(collection, blend=blend, parameters=ranges)


def held_out_mean(found: Sequence[tuple[Split, FloatArray]]) -> FloatArray:
    """(Q,): the mean over the splits that held a query out."""
    masked = [np.where(split.held_out, values, np.nan) for split, values in found]
    rows = np.array(masked)
    seen = np.isfinite(rows).any(axis=0)
    out = np.full(rows.shape[1], np.nan)
    out[seen] = np.nanmean(rows[:, seen], axis=0)
    return out


def ours(asked_for: Problem, every: Sequence[Split], trials: int) -> tuple[Tool, Tool, Tool]:
    """The default, and what a search makes of it by either rule of choice."""
    settings = Tuning(system="default", trials=trials).settings()
    default = asked_for.values([asked_for.default])[0]
    found, careful, first, second, tried, seconds = [], [], "", "", 0, 0.0
    for split in every:
        started = time.process_time()
        study = search(asked_for, split.tune, settings)
        seconds += (time.process_time() - started) / len(every)
        near = choose(asked_for, study, split.tune, "one_standard_error")
        best, nearest = asked_for.values([study.best.params, near.params])
        found.append((split, best))
        careful.append((split, nearest))
        tried = max(tried, len(study.trials))
        first = first or str(dict(study.best.params))
        second = second or str(dict(near.params))
    plain = Tool(DEFAULT, held_out_mean([(split, default) for split in every]), 0.0, 1, "")
    return (
        plain,
        Tool(OURS, held_out_mean(found), seconds, tried, first),
        Tool(CAREFUL, held_out_mean(careful), seconds, tried, second),
    )


def theirs(rival: Rival, collection: Collection, every: Sequence[Split]) -> Tool:
    """What a grid makes of it; the grid is computed once, as it does not depend on the split."""
    started = time.process_time()
    names, rows = zip(*rival.variants(collection), strict=True)
    values = np.array(rows)
    picked = [rival.choose(values, split.tune) for split in every]
    found = [(split, values[p]) for split, p in zip(every, picked, strict=True)]
    seconds = time.process_time() - started
    return Tool(rival.name, held_out_mean(found), seconds, len(names), names[picked[0]])


def difference(a: Tool, b: Tool, collection: Collection) -> Estimate:
    """Mean of a − b with its interval."""
    there = np.isfinite(a.values)
    groups = factorize(collection.runs.groups)[0]
    return estimate((a.values - b.values)[there], groups[there])


def compared(name: str, trials: int) -> Iterator[dict[str, Any]]:
    """One record a tool."""
    collection = taking_part(COLLECTIONS[name]())
    every = splits(collection)
    tools = [*ours(asked(collection), every, trials)]
    tools += [theirs(rival, collection, every) for rival in RIVALS]
    for tool in tools:
        gap, careful = (difference(mine, tool, collection) for mine in tools[1:3])
        yield {
            "collection": name,
            "queries": int(np.isfinite(tool.values).sum()),
            "splits": len(every),
            "tool": tool.name,
            "held_out": float(np.nanmean(tool.values)),
            "ours_minus": gap.mean,
            "low": gap.low,
            "high": gap.high,
            "careful_minus": careful.mean,
            "careful_low": careful.low,
            "careful_high": careful.high,
            "seconds": tool.seconds,
            "tried": tool.tried,
            "chosen": tool.chosen,
        }


def said(low: float, high: float) -> str:
    """What the interval of ours − theirs allows to be said."""
    if low > 0:
        return "better"
    if high < 0:
        return "worse"
    return "not worse" if low > -MARGIN else "not shown"


def gap_cell(record: Mapping[str, Any], prefix: str) -> str:
    """Ours − this, its interval and what that means; nothing for ours itself."""
    if record["tool"] in {OURS, CAREFUL}:
        return ""
    names = ("careful_minus", "careful_low", "careful_high")
    mean, low, high = (
        record[name] for name in (names if prefix else ("ours_minus", "low", "high"))
    )
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}] {said(low, high)}"


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """As Markdown."""
    lines = [
        "| collection | tool | nDCG@10, held out | ours, best trial − this | "
        "ours, one standard error − this | tried | CPU s |",
        "|:--|:--|--:|:--|:--|--:|--:|",
    ]
    for one in records:
        shown = f"{one['collection']}, {one['queries']:,} queries" if one["tool"] == DEFAULT else ""
        lines.append(
            f"| {shown} | {one['tool']} | {one['held_out']:.4f} | "
            f"{gap_cell(one, '')} | {gap_cell(one, 'careful')} | {one['tried']:,} | "
            f"{one['seconds']:.1f} |"
        )
    return "\n".join(lines)


def renew(found: Sequence[dict[str, Any]]) -> None:
    """Put one collection's records in the place of its earlier ones."""
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    every = [one for one in old if one["collection"] != found[0]["collection"]] + list(found)
    every.sort(key=lambda one: list(COLLECTIONS).index(one["collection"]))
    RESULTS.write_text(f"{json.dumps(every, indent=1)}\n", encoding="utf-8")
    put("rivals", table(every))


def main() -> None:
    """Run everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--only", default="", help="only this collection")
    parser.add_argument("--ranx", action="store_true", help="time the real optimize_fusion too")
    parser.add_argument("--write", action="store_true", help="renew tuning.json and docs/tuning.md")
    given = parser.parse_args()
    for name in COLLECTIONS:
        if given.only not in name:
            continue
        found = list(compared(name, given.trials))
        print(table(found), flush=True)
        if given.ranx:
            collection = taking_part(COLLECTIONS[name]())
            started = time.process_time()
            weights = ranx_itself(collection, splits(collection)[0].tune)
            print(f"ranx itself: {weights}, {time.process_time() - started:.1f} CPU s", flush=True)
        if given.write:
            renew(found)


if __name__ == "__main__":
    main()
