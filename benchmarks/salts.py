"""How often a tuning run says "ship", over a hundred ways to split the same queries.

Where there is something to gain it must be found and confirmed; where there is nothing (a control
whose grades are permuted within each query's pool, so that no ranking is better than another) no
more than the 2.5 % that a two-sided 95 % interval promises.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.salts
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.collections import COLLECTIONS, attack, problem
from benchmarks.page import put
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.tune.search.search import run_search
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.held_out import HeldOutEvaluation
from fusion_bench.tune.validation.splits import hashed_split
from fusion_bench.tune.validation.trial_selection import choose_trial

RESULTS = Path(__file__).parent / "salts.json"
#: What an interval of 95 % promises: a gain where there is none in so many cases.
PROMISED = 0.025
#: What the name of a control ends in.
CONTROL = ", grades permuted"
VERDICTS = ("ship", "too few queries", "keep", "worse")


@dataclass(frozen=True)
class Row:
    """One collection over all salts.

    Attributes:
        name: Of the collection.
        queries: Both parts together.
        verdicts: Verdict → salts.
        kept: Salts where the default itself was chosen.
        tune: Mean gain on the tuning queries.
        held_out: Mean gain on the others.
        seconds: CPU seconds of one search with its verdict.
    """

    name: str
    queries: int
    verdicts: dict[str, int]
    kept: int
    tune: float
    held_out: float
    seconds: float


def cases() -> dict[str, Callable[[], TuningObjective]]:
    """What is tuned: plain RRF with k = 60, its k and its weights."""
    return {
        "trec-dl-2019: splade + tas-b": lambda: problem(
            COLLECTIONS["trec-dl-2019"](), ("splade", "tas-b")
        ),
        "jqara: bm25 + dense + splade": lambda: problem(COLLECTIONS["jqara"]()),
        "attack: bm25 + dense + graph": lambda: problem(attack(reranked=False)),
    }


def permuted(runs: AlignedRuns, seed: int) -> AlignedRuns:
    """The grades (and what is judged) dealt out again within each query's candidates."""
    place = np.random.default_rng(seed).random(len(runs.grades))
    order = np.lexsort((place, runs.query_index))
    return replace(runs, grades=runs.grades[order], judged=runs.judged[order])


def run(
    name: str, base: TuningObjective, salts: int, tuning: TuneSettings, *, control: bool
) -> Row:
    """Search, choose and judge once a salt."""
    started, found, gains, kept = time.process_time(), Counter[str](), [], 0
    for salt in range(salts):
        one = replace(base, runs=permuted(base.runs, salt)) if control else base
        split = hashed_split(one.runs.groups, one.runs.types, split_seed=str(salt))
        study = run_search(one, split.tune, tuning.search_settings())
        chosen = choose_trial(one, study, split.tune, tuning.choose)
        judge = HeldOutEvaluation(one, split, tuning)
        default, tuned = one.evaluate_params([one.default_params, chosen.params])
        kept += chosen is study.default_trial
        tune, held_out = (
            judge.measure_gain(tuned, default, m) for m in (split.tune, split.held_out)
        )
        found[judge.decide_verdict(held_out)] += 1
        gains.append((tune.difference, held_out.difference))
    mean = np.mean(gains, axis=0)
    seconds = (time.process_time() - started) / salts
    counts = {verdict: found[verdict] for verdict in VERDICTS}
    queries = len(base.runs.queries)
    return Row(name, queries, counts, kept, float(mean[0]), float(mean[1]), seconds)


def clopper_pearson(successes: int, trials: int, alpha: float = 0.05) -> tuple[float, float]:
    """Exact interval of a share (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv

    low = betaincinv(successes, trials - successes + 1, alpha / 2) if successes else 0.0
    left = trials - successes
    high = betaincinv(successes + 1, left, 1 - alpha / 2) if left else 1.0
    return float(low), float(high)


def table(rows: Sequence[Row], salts: int) -> str:
    """As Markdown."""
    head = "| collection | queries | ship | too few | keep | worse | share of ship, 95 % interval "
    lines = [
        f"{head}| default chosen | gain, tuning | gain, held out |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        counts = " | ".join(str(row.verdicts[name]) for name in VERDICTS)
        low, high = clopper_pearson(row.verdicts["ship"], salts)
        lines.append(
            f"| {row.name} | {row.queries:,} | {counts} | {low:.1%} – {high:.1%} | "
            f"{row.kept} | {row.tune:+.4f} | {row.held_out:+.4f} |"
        )
    return "\n".join(lines)


def renew(rows: Sequence[Row], settings: Mapping[str, int | str]) -> None:
    """Put these rows in the place of earlier ones of the same name and settings."""
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    same = {name: old.get(name) for name in settings} == dict(settings)
    kept = {one["name"]: Row(**one) for one in (old["rows"] if same else ())}
    kept |= {row.name: row for row in rows}
    order = [f"{name}{control}" for control in ("", CONTROL) for name in cases()]
    every = [kept[name] for name in order if name in kept]
    record = {**settings, "rows": [asdict(row) for row in every]}
    RESULTS.write_text(f"{json.dumps(record, indent=1)}\n", encoding="utf-8")
    put("salts", table(every, int(settings["salts"])))


def main() -> None:
    """Run everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--salts", type=int, default=100)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--only", default="", help="only collections whose name contains this")
    parser.add_argument("--write", action="store_true", help="renew salts.json and docs/tuning.md")
    asked = parser.parse_args()
    tuning = TuneSettings(system="default", trials=asked.trials)
    rows = []
    for control in (False, True):
        for name, make in cases().items():
            if asked.only not in name:
                continue
            title = f"{name}{CONTROL}" if control else name
            rows.append(run(title, make(), asked.salts, tuning, control=control))
            print(
                table(rows[-1:], asked.salts).splitlines()[-1],
                f"{rows[-1].seconds:.2f} s each",
                flush=True,
            )
    for row in rows:
        if row.name.endswith(CONTROL):
            low, _ = clopper_pearson(row.verdicts["ship"], asked.salts)
            verdict = "holds" if low <= PROMISED else "BROKEN"
            print(f"{row.name}: {verdict}: from {low:.1%}, promised {PROMISED:.1%}")
    if asked.write:
        renew(rows, {"salts": asked.salts, "trials": asked.trials, "choose": tuning.choose})


if __name__ == "__main__":
    main()
