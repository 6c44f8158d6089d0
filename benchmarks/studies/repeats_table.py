"""Repeated repeats: how often intervals hold the true difference, and what real agents show.

python -m benchmarks.studies.repeats_table [--draws N] [--write]
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.studies.repeat_values import (
    AGENTS,
    FIXED,
    KINDS,
    Contrast,
    load_agents,
    make_contrasts,
)
from benchmarks.studies.simulations.promise import Promise
from benchmarks.table import replace_between_marks
from fusion_bench.data.ordering import FloatArray
from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.stats.comparison import NOISE
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean
from fusion_bench.stats.repeat_variance import (
    add_repeat_variance,
    count_disagreements,
    make_repeat_terms,
    measure_repeat_spread,
    plan_narrowing,
    split_variance,
)

RESULTS = Path(__file__).parent / "repeats.json"
PAGE = Path(__file__).parents[2] / "docs" / "studies" / "trials.md"
DRAWS = 2_000
REPEAT_SDS = (0.0, 0.01, 0.02, 0.05)
WAYS = ("one trial", "mean over trials", "trials counted as queries", "crossed model")
#: Of one repeat against several, as the gate has it.
BORROWED = "crossed model, spread borrowed"
#: What coverage is promised of the crossed model.
LOW, HIGH = 0.93, 0.97
#: Tolerance of the gate.
MAX_DROP = 0.005


@dataclass(frozen=True)
class Coverage:
    """How often the intervals of one way held the true difference of one contrast.

    Attributes:
        contrast: Its name.
        kind: One of ``KINDS``.
        trial_sd: Main effect of repeats that was planted.
        way: One of ``WAYS``, or ``BORROWED``.
        hits: Draws whose interval held it.
        draws: All draws.
        half_width: Mean half width of the intervals.
    """

    contrast: str
    kind: str
    trial_sd: float
    way: str
    hits: int
    draws: int
    half_width: float

    @property
    def share(self) -> float:
        """Hits ÷ draws."""
        return self.hits / self.draws

    @property
    def holds(self) -> bool:
        """Whether the coverage lies from 93 to 97 %, within its Monte Carlo error."""
        parts = Promise.from_range(self.contrast, self.way, self.hits, self.draws, LOW, HIGH)
        return all(part.holds for part in parts)


def make_intervals(first: FloatArray, second: FloatArray) -> dict[str, MeanEstimate]:
    """The interval of the mean difference in each way, from repeats of shape (T, Q)."""
    by_query = first.mean(axis=0) - second.mean(axis=0)
    means, terms = estimate_mean(by_query), make_repeat_terms((first, second))
    intervals = {
        WAYS[0]: estimate_mean(first[0] - second[0]),
        WAYS[1]: means,
        WAYS[2]: estimate_mean((first - second).ravel()),
        WAYS[3]: add_repeat_variance(means, terms),
    }
    if len(second) == 1:
        borrowed = make_repeat_terms((first, None), borrow=True)
        intervals[BORROWED] = add_repeat_variance(means, borrowed)
    return intervals


def simulate(contrast: Contrast, trial_sd: float, draws: int, seed: int) -> list[Coverage]:
    """The coverage of each way on one contrast."""
    rng = np.random.default_rng(seed)
    hits: defaultdict[str, int] = defaultdict(int)
    widths: defaultdict[str, float] = defaultdict(float)
    for _ in range(draws):
        for way, interval in make_intervals(*contrast.draw(rng, trial_sd)).items():
            hits[way] += interval.low <= contrast.truth <= interval.high
            widths[way] += (interval.high - interval.low) / 2
    ways = [way for way in widths if way != BORROWED or contrast.kind == KINDS[2]]
    return [
        Coverage(contrast.name, contrast.kind, trial_sd, way, hits[way], draws, widths[way] / draws)
        for way in ways
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def format_coverage(rows: Sequence[Coverage]) -> str:
    """One line for each kind of contrast, effect of repeats and way."""
    lines = [
        "| compared | sd of trials | interval | coverage, least–most | in 93–97 % | half width |",
        "|:--|--:|:--|--:|--:|--:|",
    ]
    for kind in KINDS:
        for trial_sd in REPEAT_SDS:
            for way in (*WAYS, BORROWED):
                part = [r for r in rows if (r.kind, r.trial_sd, r.way) == (kind, trial_sd, way)]
                if part:
                    lines.append(_format_part(part, show_design=way == WAYS[0]))
    return "\n".join(lines)


def _format_part(part: Sequence[Coverage], *, show_design: bool) -> str:
    shares = [row.share for row in part]
    design = part[0].kind if show_design else ""
    sd = f"{part[0].trial_sd:g}" if show_design else ""
    coverage = (
        f"{_percent(float(np.mean(shares)))} %, {_percent(min(shares))}–{_percent(max(shares))}"
    )
    held = f"{sum(row.holds for row in part)} of {len(part)}"
    width = float(np.mean([row.half_width for row in part]))
    return f"| {design} | {sd} | {part[0].way} | {coverage} | {held} | {width:.3f} |"


def describe_coverage(rows: Sequence[Coverage]) -> str:
    """What the table shows, in words and its own numbers."""
    once = [row for row in rows if row.kind == KINDS[2]]
    several = [row for row in rows if row.kind != KINDS[2]]
    crossed = [row for row in several if row.way == WAYS[3]]
    naive = [row.share for row in several if row.way == WAYS[2]]
    plain = [row for row in several if row.way == WAYS[1]]
    fixed = [row.share for row in once if row.way == WAYS[3]]
    borrowed = [row.share for row in once if row.way == BORROWED]
    exact = [row for row in plain if not row.trial_sd]
    shares = [row.share for row in crossed]
    return (
        f"The crossed model covers {_percent(min(shares))}–{_percent(max(shares))} %: "
        f"{sum(row.holds for row in crossed)} of {len(crossed)} designs lie in 93–97 %, "
        f"{sum(row.share > HIGH and not row.holds for row in crossed)} above. Trials "
        f"counted as queries cover {_percent(min(naive))}–{_percent(max(naive))} %. The plain "
        f"paired test of the means over trials is already right where trials have no effect of "
        f"their own ({sum(row.holds for row in exact)} of {len(exact)} designs); with one it "
        f"covers down to {_percent(min(row.share for row in plain))} %. An agent that is seen once "
        f"and counts as fixed lets the crossed model cover down to {_percent(min(fixed))} %; with "
        f"the spread of the other agent it covers {_percent(min(borrowed))}–"
        f"{_percent(max(borrowed))} %. A share counts as "
        f"in 93–97 % where its 95 % Clopper–Pearson interval reaches there."
    )


def format_agents(agents: dict[str, dict[str, FloatArray]]) -> str:
    """Means, deviations, disagreements and variances of the real systems."""
    lines = [
        "| collection | system | mean ± sd of 3 trials | trials 1 and 2 differ on | any two | "
        "sd of queries / trials / residual |",
        "|:--|:--|--:|--:|--:|--:|",
    ]
    for collection, systems in agents.items():
        for name, values in systems.items():
            spread, parts = measure_repeat_spread(values), split_variance(values)
            first, some = count_disagreements(values, noise=NOISE)
            sds = (
                ""
                if parts is None
                else " / ".join(
                    f"{np.sqrt(part):.3f}"
                    for part in (parts.queries, parts.repeats, parts.residual)
                )
            )
            lines.append(
                f"| {collection} | {name} | {values.mean():.4f} ± {spread.sd:.4f} | {first} of "
                f"{values.shape[1]} | {some} | {sds} |"
            )
    return "\n".join(lines)


def describe_agents(agents: dict[str, dict[str, FloatArray]]) -> str:
    """What the crossed model says of the real contrasts, and the gate of pairs of repeats."""
    contrasts = [each for each in make_contrasts(agents) if each.kind != KINDS[2]]
    intervals = [make_intervals(each.first, each.second) for each in contrasts]
    same = sum(each[WAYS[1]] is each[WAYS[3]] for each in intervals)
    wider = max(
        (each[WAYS[3]].high - each[WAYS[3]].low) / (each[WAYS[1]].high - each[WAYS[1]].low)
        for each in intervals
    )
    repeats = sum(
        _prefers_repeats(contrast, interval[WAYS[1]])
        for contrast, interval in zip(contrasts, intervals, strict=True)
    )
    alarms, pairs = count_alarms(agents)
    return (
        f"Of {len(contrasts)} contrasts {same} have no added variance of trials: their crossed "
        f"interval is the plain one. The widest is {wider:.2f} times as wide as the plain one. At "
        f"equal cost one more trial narrows {repeats} of the intervals most, and more queries the "
        f"others. Of {pairs} pairs of trials of one agent, {alarms} alarm in the gate at max_drop "
        f"{MAX_DROP:g}, where the earlier trial is the baseline."
    )


def _prefers_repeats(contrast: Contrast, by_queries: MeanEstimate) -> bool:
    sides = [side for side in (contrast.first, contrast.second) if len(side) > 1]
    spreads = [measure_repeat_spread(side) for side in sides]
    plan = plan_narrowing(by_queries, spreads, is_fixed=len(sides) == 1)
    return plan is not None and plan.prefers_repeats


def count_alarms(agents: dict[str, dict[str, FloatArray]]) -> tuple[int, int]:
    """Pairs of repeats of one agent that alarm in the gate, and all pairs."""
    pairs = [
        (collection, systems[name][i], systems[name][j])
        for collection, systems in agents.items()
        for name in AGENTS
        for i, j in combinations(range(len(systems[FIXED])), 2)
    ]
    checks = [
        Check(
            name,
            None,
            "nDCG@10",
            MAX_DROP,
            before,
            after,
            tuple(f"q{q}" for q in range(len(before))),
        )
        for name, before, after in pairs
    ]
    results = [run_checks([check])[0] for check in checks]
    return sum(result.status == "regressed" for result in results), len(pairs)


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate and print; with ``--write`` renew docs/studies/trials.md and the results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.studies.repeats_table", description=__doc__
    )
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws of each contrast")
    parser.add_argument("--write", action="store_true", help="renew docs/studies/trials.md")
    options = parser.parse_args(arguments)
    agents = load_agents()
    rows = [
        row
        for seed, contrast in enumerate(make_contrasts(agents))
        for trial_sd in REPEAT_SDS
        for row in simulate(contrast, trial_sd, options.draws, seed)
    ]
    command = f"`python -m benchmarks.studies.repeats_table --draws {options.draws}`"
    texts = {
        "coverage": f"{describe_coverage(rows)} ({command})\n\n{format_coverage(rows)}",
        "agents": f"{describe_agents(agents)} ({command})\n\n{format_agents(agents)}",
    }
    for name, text in texts.items():
        print(text, end="\n\n")
        if options.write:
            replace_between_marks(PAGE, f"\n{text}\n\n", f"trials: {name}")
    if options.write:
        data = [asdict(row) for row in rows]
        RESULTS.write_text(f"{json.dumps(data, indent=1, ensure_ascii=False)}\n", "utf-8")


if __name__ == "__main__":
    main()
