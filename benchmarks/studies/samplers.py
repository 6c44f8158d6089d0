"""The held-out gain and the CPU seconds of each sampler, on the same splits of seven collections.

All that the methods declare is tuned, as by default; ``cmaes`` leaves out choices, which it cannot
search. The first splits are searched with many trials, of which the first ones are the few.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.samplers
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.collections import (
    RRF,
    Collection,
    build_objective,
    load_built_in,
    load_collection,
    load_parity_collection,
)
from benchmarks.studies.study import parse_options
from benchmarks.studies.tuning import Clock
from benchmarks.table import replace_between_marks
from fusion_bench.data.query_splits import QuerySplit, hashed_split
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult, Trial, run_search
from fusion_bench.tune.trial_selection import choose_trial

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "tuning.md"
CONVERSATIONS = ("org_manual_bm25", "org_manual_ance", "org_convdr")
COLLECTIONS = {
    **{n: partial(load_collection, n) for n in ("attack", "jqara", "codec", "trec-dl-2019")},
    "nfcorpus": partial(load_collection, "nfcorpus"),
    "referee": partial(load_built_in, "referee", "late-interaction"),
    "trec-cast-2021": partial(load_parity_collection, "trec-cast-2021", CONVERSATIONS),
}
V2: Mapping[str, Any] = {"method": "rrf_v2", "k": 60, "bonus": {1: 0.05, 3: 0.02}}
#: Row of the table → the sampler's name.
SAMPLERS: Mapping[str, str] = {f"`{name}`": name for name in ("tpe", "cmaes", "qmc", "random")}
#: The row that the others are compared with.
REFERENCE = "`tpe`"


@dataclass(frozen=True)
class Outcome:
    """What one search on one split came to.

    Attributes:
        row: Of the table.
        collection: Its name.
        split: Its number.
        trials: How many.
        gain: Mean of chosen − default over the held-out queries.
        cpu: Seconds of the search and the choice.
    """

    row: str
    collection: str
    split: int
    trials: int
    gain: float
    cpu: float


def make_objective(collection: Collection) -> TuningObjective:
    """RRF, its second version where a list has the question's role, and a blend if it can have."""
    has_question = any("question" in roles for roles in collection.runs.roles)
    blend = None
    if collection.runs.rerankers:
        blend = {"method": "position_aware", "reranker": collection.runs.rerankers[0], "depth": 50}
        blend |= {"retrieval": "reciprocal_rank", "missing": "below"}
    return build_objective(collection, fusion=V2 if has_question else RRF, blend=blend)


def search_with(
    row: str, objective: TuningObjective, split: QuerySplit, seed: int, sizes: Sequence[int]
) -> Iterator[tuple[int, Trial, float]]:
    """How many trials, what they choose, and CPU seconds."""
    sampler = SAMPLERS[row]
    if sampler == "cmaes":
        numbers = tuple(p for p in objective.parameters if p.kind != "choice")
        objective = replace(objective, parameters=numbers)
    rules = TuneSettings(system="default", trials=max(sizes), sampler=sampler, seed=seed)
    clock, seconds = Clock(), {}

    def on_trial(trial: Trial, _best: Trial) -> None:
        clock.__exit__()
        seconds[trial.number + 1] = clock.cpu
        clock.__enter__()

    # A copy: what was evaluated for another sampler is not known yet.
    copy = replace(objective)
    with clock:
        result = run_search(copy, split.tune, rules.search_settings(), on_trial=on_trial)
    for size in sizes:
        choosing = Clock()
        with choosing:
            chosen = choose_trial(copy, SearchResult(result.trials[:size]), split.tune, "shrinkage")
        yield size, chosen, seconds[size] + choosing.cpu


def measure(
    name: str, objective: TuningObjective, splits: int, long: int, sizes: Sequence[int]
) -> Iterator[Outcome]:
    """Every sampler on every split of a collection; the first ``long`` splits with all sizes."""
    default = objective.evaluate_params([objective.default_params])[0]
    runs = objective.runs
    for number in range(splits):
        split = hashed_split(runs.groups, runs.types, split_seed=str(number))
        wanted = sizes if number < long else sizes[:1]
        for row in SAMPLERS:
            for size, chosen, cpu in search_with(row, objective, split, 7 + number, wanted):
                values = objective.evaluate_params([chosen.params])[0]
                gain = float((values - default)[split.held_out].mean())
                yield Outcome(row, name, number, size, gain, cpu)


def format_table(outcomes: Sequence[Outcome]) -> str:
    """As Markdown: means over the splits of a collection, then over collections."""
    sizes = list(dict.fromkeys(each.trials for each in outcomes))
    columns = ("less `tpe`", "CPU s", "gain a CPU s")
    head = " | ".join(f"gain, {size:,} trials | {' | '.join(columns)}" for size in sizes)
    lines = [f"| sampler | {head} |", f"|:--|{'--:|' * 4 * len(sizes)}"]
    for row in SAMPLERS:
        cells = (_format_cells(row, [e for e in outcomes if e.trials == size]) for size in sizes)
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _format_cells(row: str, outcomes: Sequence[Outcome]) -> str:
    """Of one sampler and number of trials; ± is the standard error over collections and splits."""
    reference = {(e.collection, e.split): e.gain for e in outcomes if e.row == REFERENCE}
    mine = [each for each in outcomes if each.row == row]
    parts = [[e for e in mine if e.collection == name] for name in {e.collection for e in mine}]
    gain = float(np.mean([np.mean([each.gain for each in part]) for part in parts]))
    cpu = float(np.mean([np.mean([each.cpu for each in part]) for part in parts]))
    gaps = [each.gain - reference[each.collection, each.split] for each in mine]
    error = float(np.std(gaps, ddof=1)) / len(gaps) ** 0.5
    against = "" if row == REFERENCE else f"{np.mean(gaps):+.4f} ± {error:.4f}"
    return f"{gain:+.4f} | {against} | {cpu:.2f} | {gain / cpu:.3f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything and write the table."""
    full = {"splits": 4, "long": 2, "trials": 100, "many": 1000}
    toy = {"splits": 2, "long": 2, "trials": 12, "many": 20}
    options = parse_options(arguments, __doc__, full, toy)
    toys = {"toy": partial(load_collection, "toy")}
    outcomes: list[Outcome] = []
    for name, load in (toys if options.toy else COLLECTIONS).items():
        if options.only in name:
            sizes = (options.trials, options.many)
            objective = make_objective(load())
            new = list(measure(name, objective, options.splits, options.long, sizes))
            print(format_table(new), flush=True)
            outcomes += new
    if options.write:
        replace_between_marks(PAGE, f"\n{format_table(outcomes)}\n\n", "samplers")


if __name__ == "__main__":
    main()
