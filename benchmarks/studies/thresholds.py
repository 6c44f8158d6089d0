"""Whether thresholds hold what they promise: ``python -m benchmarks.studies.thresholds``.

Real collections are worlds: half of their queries lose their relevant documents, by hash. Queries,
or groups, are drawn from a world with replacement; the world's own shares are the truth. Made
worlds have normal signals. ``--write`` renews docs/studies/thresholds.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.collections import load_collection
from benchmarks.table import encode_csv
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.experiment.system import System
from fusion_bench.ranking.query_signals import compute_signals, mask_half
from fusion_bench.stats.intervals import clopper_pearson
from fusion_bench.stats.thresholds import (
    FALSE_ANSWERS,
    LEVEL,
    MIN_KEPT,
    PERMUTATIONS,
    RISK,
    Share,
    adjust_holm,
    find_threshold,
    judge_signal,
    order_nan_last,
)

PAGE: Final = Path(__file__).parents[2] / "docs" / "studies" / "thresholds.csv"
#: Collection → the lists of its systems, and its reranker.
REAL: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "jqara": (("bm25", "bge-m3+dense"), "bge-reranker-v2-m3"),
    "nfcorpus": (("bm25", "minilm"), ""),
    "attack": (("bm25", "dense", "graph"), "ltr"),
}
#: Standard deviations between the two kinds of a made world's signals.
SHIFTS: Final = (0.0, 0.5, 1.0, 2.0)
DRAWS: Final = 2_000
#: Calibrating queries of a draw; each kind's queries of a draw that tests, and that chooses.
SIZES: Final = (29, 60, 120, 300)
SIDE: Final = 120
CHOOSING: Final = (100, 300)


@dataclass(frozen=True, eq=False)
class World:
    """Queries of both kinds with their signals.

    Attributes:
        name: Of the collection.
        signals: Name → shape (Q,), −∞ for NaN.
        answerable: Shape (Q,).
        groups: Shape (Q,): group codes.
    """

    name: str
    signals: Mapping[str, FloatArray]
    answerable: BoolArray
    groups: IntArray


def load_world(name: str) -> World:
    """A real collection, masked, with the signals of RRF, convex fusion and reranked RRF."""
    collection = load_collection(name)
    lists, reranker = REAL.get(name, (collection.runs.sources, "reranker"))
    runs, answerable = mask_half(collection.runs)
    blend = {"method": "replace", "reranker": reranker, "depth": 50, "missing": "below"}
    systems = [
        System("rrf", lists, "rrf"),
        System("convex", lists, {"method": "weighted_score", "normalize": "min_max"}),
        *([System("reranked", lists, "rrf", blend)] if reranker else []),
    ]
    signals: dict[str, FloatArray] = {}
    for system in systems:
        for signal, values in compute_signals(system, runs).items():
            known = order_nan_last(values)
            if not any(np.array_equal(known, each) for each in signals.values()):
                signals[f"{signal} of {system.name}"] = known
    return World(name, signals, answerable, number_by_appearance(runs.groups)[0])


def make_worlds() -> Iterator[World]:
    """Normal signals, alone and in groups of four whose queries correlate by .7."""
    generator = np.random.default_rng(2)
    for size in (1, 4):
        answerable = np.arange(4_000) < 2_000
        groups = np.arange(4_000) // size
        common = generator.normal(size=(len(SHIFTS), 4_000 // size)).repeat(size, axis=1)
        share = 0.7 if size > 1 else 0.0
        noise = np.sqrt(share) * common
        noise += np.sqrt(1 - share) * generator.normal(size=(len(SHIFTS), 4_000))
        signals = {
            f"shift {shift:g}": row + shift * answerable
            for shift, row in zip(SHIFTS, noise, strict=True)
        }
        yield World(f"made{', groups of 4' if size > 1 else ''}", signals, answerable, groups)


def _draw(
    world: World, kind: BoolArray, count: int, draws: int, generator: np.random.Generator
) -> IntArray:
    """(draws, count): queries of a kind: a random group, and a random query of it."""
    rows = np.flatnonzero(kind)
    rows = rows[np.argsort(world.groups[rows], kind="stable")]
    _, starts, sizes = np.unique(world.groups[rows], return_index=True, return_counts=True)
    chosen = generator.integers(len(starts), size=(draws, count))
    within = (generator.random((draws, count)) * sizes[chosen]).astype(np.int64)
    return np.asarray(rows[starts[chosen] + within])


def _weights(world: World, kind: BoolArray) -> FloatArray:
    """(n,): the weight of each query of a kind where every group counts once."""
    codes = world.groups[kind]
    return 1 / np.bincount(codes)[codes] / len(set(codes.tolist()))


def count_broken_promises(world: World, draws: int) -> Iterator[dict[str, object]]:
    """How often the world's share of false answers exceeds the stated one."""
    unanswerable = ~world.answerable
    weights = _weights(world, unanswerable)
    for name, signal in world.signals.items():
        generator = np.random.default_rng(3)
        for size in SIZES:
            drawn = signal[_draw(world, unanswerable, size, draws, generator)]
            thresholds = np.array([find_threshold(row, FALSE_ANSWERS) for row in drawn])
            values, order = np.sort(signal[unanswerable]), np.argsort(signal[unanswerable])
            above = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
            shares = above[np.searchsorted(values, thresholds, "right")]
            broken = int((shares > FALSE_ANSWERS + 1e-9).sum())
            yield _row(world.name, name, f"promise broken, {size} calibrating", broken, draws, RISK)


def count_usable_of_shuffled(world: World, draws: int) -> dict[str, object]:
    """How often some signal is called usable where labels say nothing.

    The permutations are those of the product: the same for every draw, as each has its answerable
    queries first.
    """
    generator = np.random.default_rng(4)
    is_answerable = np.arange(2 * SIDE) < SIDE
    permuted = np.random.default_rng(0).permuted(
        np.tile(is_answerable.astype(np.float64), (PERMUTATIONS, 1)), axis=1
    )
    everyone = np.ones(len(world.answerable), dtype=bool)
    drawn = _draw(world, everyone, 2 * SIDE, draws, generator)
    p, kept = [], []
    for signal in world.signals.values():
        values = signal[drawn]
        ordered = np.sort(values, axis=1)
        ranks = np.array(
            [
                (np.searchsorted(o, v) + np.searchsorted(o, v, "right") + 1) / 2
                for o, v in zip(ordered, values, strict=True)
            ]
        )
        observed = ranks[:, :SIDE].sum(axis=1)
        reached = (permuted @ ranks.T >= observed - 1e-6).sum(axis=0)
        p.append((1 + reached) / (1 + PERMUTATIONS))
        thresholds = [find_threshold(row[SIDE:], FALSE_ANSWERS) for row in values]
        kept.append((values[:, :SIDE] > np.array(thresholds)[:, None]).sum(axis=1))
    usable = 0
    for column in range(draws):
        adjusted = adjust_holm([float(row[column]) for row in p])
        shares = []
        for count in (int(each[column]) for each in kept):
            low, high = clopper_pearson(count, SIDE)
            shares.append(Share(share=count / SIDE, low=low, high=high, queries=SIDE))
        judged = (
            judge_signal(each, share, FALSE_ANSWERS, MIN_KEPT)
            for each, share in zip(adjusted, shares, strict=True)
        )
        usable += "usable" in judged
    return _row(world.name, "any", "usable with shuffled labels", usable, draws, LEVEL)


def measure_choice(world: World, side: int, draws: int) -> Iterator[dict[str, object]]:
    """What the chosen signal keeps of the world's answerable queries ÷ what the best one keeps.

    The best one is the signal that keeps most over all draws, or the best of each draw.
    """
    generator = np.random.default_rng(5)
    answerable = _draw(world, world.answerable, side, draws, generator)
    tuning, held_out = (_draw(world, ~world.answerable, side, draws, generator) for _ in range(2))
    weights, tuned, kept = _weights(world, world.answerable), [], []
    for signal in world.signals.values():
        chosen_at = np.array([find_threshold(row, FALSE_ANSWERS) for row in signal[tuning]])
        tuned.append((signal[answerable] > chosen_at[:, None]).mean(axis=1))
        promised = np.array([find_threshold(row, FALSE_ANSWERS) for row in signal[held_out]])
        values, order = np.sort(signal[world.answerable]), np.argsort(signal[world.answerable])
        above = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
        kept.append(above[np.searchsorted(values, promised, "right")])
    table = np.array(kept)
    chosen = table[np.argmax(tuned, axis=0), np.arange(draws)].mean()
    for name, best in (
        ("the best signal", table.mean(axis=1).max()),
        ("the best of each draw", table.max(axis=0).mean()),
    ):
        yield {
            "world": world.name,
            "signal": "chosen",
            "quantity": f"kept ÷ kept by {name}, {side} a side choose",
            "value": f"{chosen / best if best else 1.0:.3f}",
            "low": "",
            "high": "",
            "limit": ".9 at least",
        }


def _row(
    world: str, signal: str, quantity: str, count: int, draws: int, limit: float
) -> dict[str, object]:
    low, high = clopper_pearson(count, draws)
    return {
        "world": world,
        "signal": signal,
        "quantity": quantity,
        "value": f"{count / draws:.4f}",
        "low": f"{low:.4f}",
        "high": f"{high:.4f}",
        "limit": f"{limit:g} at most",
    }


def run_study(worlds: Sequence[World], draws: int) -> list[dict[str, object]]:
    """Every cell of the study."""
    rows: list[dict[str, object]] = []
    for world in worlds:
        rows += count_broken_promises(world, draws)
        rows.append(count_usable_of_shuffled(world, draws))
        rows += [row for side in CHOOSING for row in measure_choice(world, side, draws)]
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the cells; 1 if one breaks its limit beyond the noise of its draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true", help="a small made collection, a second")
    parser.add_argument("--write", action="store_true", help="renew docs/studies/thresholds.csv")
    options = parser.parse_args(arguments)
    if options.toy:
        rows = run_study([load_world("toy")], 20)
    else:
        rows = run_study([*map(load_world, REAL), *make_worlds()], DRAWS)
    for row in rows:
        print("; ".join(f"{key} {value}" for key, value in row.items() if value))
    if options.write:
        cells = [[str(cell) for cell in row.values()] for row in rows]
        PAGE.write_text(encode_csv([[*rows[0]], *cells]), encoding="utf-8")
    limited = [row for row in rows if row["low"]]
    return int(any(float(f"{row['low']}") > float(f"{row['limit']}".split()[0]) for row in limited))


if __name__ == "__main__":
    raise SystemExit(main())
