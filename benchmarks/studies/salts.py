"""How often tuning ends with "ship", over a hundred splits of the same queries.

Each collection has a control: its grades are permuted within each query's pool, so that no ranking
is better than another. There, at most 2.5 % may end with "ship" (two-sided 95 % interval).

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.salts
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.collections import (
    build_objective,
    load_attack,
    load_collection,
    make_toy_collection,
)
from benchmarks.studies.study import parse_options, write_table
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.query_splits import hashed_split
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import run_search
from fusion_bench.tune.trial_selection import choose_trial, describe_choice

RESULTS = Path(__file__).parent / "salts.json"
#: Greatest share of "ship" in a control, by the two-sided 95 % interval.
FALSE_SHIPS = 0.025
#: Suffix of the name of a control.
CONTROL = ", grades permuted"
VERDICTS = ("ship", "too few queries", "too few tuning queries", "keep", "worse")


@dataclass(frozen=True)
class Row:
    """One collection over all salts.

    Attributes:
        name: Of the collection.
        queries: Both parts together.
        verdicts: Verdict → salts.
        defaults: Salts where the default itself was chosen.
        tune: Mean gain on the tuning queries.
        held_out: Mean gain on the held-out queries.
        seconds: CPU seconds of one search with its verdict.
    """

    name: str
    queries: int
    verdicts: dict[str, int]
    defaults: int
    tune: float
    held_out: float
    seconds: float


def list_cases(toy: bool = False) -> dict[str, Callable[[], TuningObjective]]:
    """Plain RRF with k = 60: its k and its weights are tuned."""
    if toy:
        return {"toy": lambda: build_objective(make_toy_collection())}
    return {
        "trec-dl-2019: splade + tas-b": lambda: build_objective(
            load_collection("trec-dl-2019"), ("splade", "tas-b")
        ),
        "jqara: bm25 + dense + splade": lambda: build_objective(load_collection("jqara")),
        "attack: bm25 + dense + graph": lambda: build_objective(load_attack(reranked=False)),
    }


def permute_grades(runs: AlignedRuns, seed: int) -> AlignedRuns:
    """The grades (judged or not) permuted within each query's candidates."""
    place = np.random.default_rng(seed).random(len(runs.grades))
    order = np.lexsort((place, runs.query_index))
    return replace(runs, grades=runs.grades[order], judged=runs.judged[order])


def run_salts(
    name: str, base: TuningObjective, salts: int, tuning: TuneSettings, *, control: bool
) -> Row:
    """Search, choose and evaluate once a salt."""
    started, verdicts, gains, defaults = time.process_time(), Counter[str](), [], 0
    for salt in range(salts):
        objective = replace(base, runs=permute_grades(base.runs, salt)) if control else base
        split = hashed_split(objective.runs.groups, objective.runs.types, split_seed=str(salt))
        study = run_search(objective, split.tune, tuning.search_settings())
        chosen = choose_trial(objective, study, split.tune, tuning.choose)
        judge = HeldOutEvaluation(objective, split, tuning)
        default, tuned = objective.evaluate_params([objective.default_params, chosen.params])
        defaults += chosen is study.default_trial
        tune, held_out = (
            judge.measure_gain(judge.pair_values(tuned, default, m))
            for m in (split.tune, split.held_out)
        )
        verdicts[judge.decide_verdict(held_out, describe_choice(study, chosen))] += 1
        gains.append((tune.difference, held_out.difference))
    mean = np.mean(gains, axis=0)
    seconds = (time.process_time() - started) / salts
    counts = {verdict: verdicts[verdict] for verdict in VERDICTS}
    queries = len(base.runs.queries)
    return Row(name, queries, counts, defaults, float(mean[0]), float(mean[1]), seconds)


def clopper_pearson(successes: int, trials: int, alpha: float = 0.05) -> tuple[float, float]:
    """Exact interval of a share (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv

    low = betaincinv(successes, trials - successes + 1, alpha / 2) if successes else 0.0
    failures = trials - successes
    high = betaincinv(successes + 1, failures, 1 - alpha / 2) if failures else 1.0
    return float(low), float(high)


def format_table(rows: Sequence[Row], salts: int) -> str:
    """As Markdown."""
    head = (
        "| collection | queries | ship | too few | too few to tune on | keep | worse | "
        "share of ship, 95 % interval "
    )
    lines = [
        f"{head}| default chosen | gain, tuning | gain, held out |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        counts = " | ".join(str(row.verdicts[name]) for name in VERDICTS)
        low, high = clopper_pearson(row.verdicts["ship"], salts)
        lines.append(
            f"| {row.name} | {row.queries:,} | {counts} | {low:.1%} – {high:.1%} | "
            f"{row.defaults} | {row.tune:+.4f} | {row.held_out:+.4f} |"
        )
    return "\n".join(lines)


def write_rows(rows: Sequence[Row], settings: Mapping[str, int | str]) -> None:
    """Replace earlier rows of the same name and settings."""
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    same = {name: old.get(name) for name in settings} == dict(settings)
    by_name = {cells["name"]: Row(**cells) for cells in (old["rows"] if same else ())}
    by_name |= {row.name: row for row in rows}
    order = [f"{name}{control}" for control in ("", CONTROL) for name in list_cases()]
    every = [by_name[name] for name in order if name in by_name]
    record = {**settings, "rows": [asdict(row) for row in every]}
    RESULTS.write_text(f"{json.dumps(record, indent=1)}\n", encoding="utf-8")
    write_table("salts", format_table(every, int(settings["salts"])))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything and write the table."""
    full, toy = {"salts": 100, "trials": 100}, {"salts": 2, "trials": 6}
    options = parse_options(arguments, __doc__, full, toy)
    tuning = TuneSettings(system="default", trials=options.trials)
    rows = []
    for control in (False, True):
        for name, make_objective in list_cases(options.toy).items():
            if options.only not in name:
                continue
            title = f"{name}{CONTROL}" if control else name
            row = run_salts(title, make_objective(), options.salts, tuning, control=control)
            rows.append(row)
            line = format_table([row], options.salts).splitlines()[-1]
            print(line, f"{row.seconds:.2f} s each", flush=True)
    for row in rows:
        if row.name.endswith(CONTROL):
            low, _ = clopper_pearson(row.verdicts["ship"], options.salts)
            answer = "as expected" if low <= FALSE_SHIPS else "TOO MANY"
            print(f"{row.name}: {answer}: at least {low:.1%} ship, expected {FALSE_SHIPS:.1%}")
    if options.write:
        settings = {"salts": options.salts, "trials": options.trials, "choose": tuning.choose}
        settings["verdicts"] = ", ".join(VERDICTS)
        write_rows(rows, settings)


if __name__ == "__main__":
    main()
