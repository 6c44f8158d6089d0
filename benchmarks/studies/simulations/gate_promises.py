"""How often a gate's check regresses without a loss, and passes a loss: docs/studies.

python -m benchmarks.studies.simulations.gate_promises [--samples N]

Each sample of a design is one check, decided by ``infer_family`` and ``decide_status``. *No loss*:
the true difference is 0 and ``max_drop`` is 0, which regresses most easily. *Loss of max_drop*: the
true difference is −``max_drop``. The promise is for samples with at least 20 units, 10 changed, and
losses on at least 10 % of the units; other samples are counted beside them.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.studies.simulations import gate_tolerances as real
from benchmarks.studies.simulations import inference_cells as designs
from benchmarks.table import format_rows, replace_between_marks, write_csv
from fusion_bench.data.ordering import FloatArray
from fusion_bench.gate.verdict import decide_status
from fusion_bench.stats.inference import MIN_CHANGED, MIN_UNITS, infer_family
from fusion_bench.stats.values import Pair

PAGE = Path(__file__).parents[3] / "docs" / "studies" / "gate-tolerances.md"
SIZES: Final = (20, 26, 60, 200, 1_000)
#: Losses on fewer of the units are promised nothing.
LOSING: Final = 0.1
#: Changes of a real collection whose true difference is smaller are no losses.
LEAST: Final = 0.001
#: The page leaves out designs of which fewer samples count.
ENOUGH: Final = 100


class Design(NamedTuple):
    """Samples of one row, with their true difference.

    Attributes:
        name: Of the design.
        draw: A generator and the number of runs → samples of one row.
        loss: Taken from each query of a design without a true difference.
    """

    name: str
    draw: Callable[[np.random.Generator, int], designs.Sample]
    loss: float


def list_made(units: int) -> Iterator[Design]:
    """Designs whose differences are made."""
    for kind in designs.KINDS:
        yield Design(kind, designs.draw_page(kind, 1, units), 0.3)
    yield Design("exponential", designs.draw_exponential(1, units), 0.3)
    yield Design("t3", designs.draw_t3(1, units), 0.3)
    for large_lose in (False, True):
        kind = "unequal groups, the largest lose" if large_lose else "unequal groups"
        yield Design(kind, designs.draw_groups(1, units, large_lose=large_lose), 0.3)
    yield Design("losses of .45 on 10 %", designs.draw_rare(0.1, 0.45, 0.01, 1, units), 0.02)
    for share in (0.1, 0.2, 0.5):
        yield Design(f"losses on {share:.0%}", designs.draw_gains(share, 1, units), 0.0)
    levels = (
        ("RR", designs.RECIPROCALS, designs.RR_ODDS),
        ("P@5", designs.FIFTHS, designs.FIFTH_ODDS),
    )
    for kind, values, odds in levels:
        for gains in (False, True):
            draw = designs.draw_stepped(values, odds, 1, units, gains=gains)
            yield Design(f"{kind}-like{', losses' if gains else ''}", draw, 0.0 if gains else 0.02)


def list_real(collection: str, units: int) -> Iterator[Design]:
    """The changes of a collection: with random signs, and as they are where they lose or gain."""
    values, members = real.read_values(collection)
    codes = np.empty(len(values["guarded"]), dtype=np.int64)
    for code, rows in enumerate(members):
        codes[rows] = code
    for name in real.CHANGES:
        difference = (values[name] - values["guarded"])[None]
        flipped = designs.draw_world(difference, codes, units, flipped=True)
        yield Design(f"{collection}: {name}, random signs", flipped, 0.02)
        if abs(difference.mean()) >= LEAST:
            drawn = designs.draw_world(difference, codes, units, flipped=False)
            yield Design(f"{collection}: {name}", drawn, 0.0)


class Counts(NamedTuple):
    """Samples of one design, those that are promised nothing first: shape (2,) each.

    Attributes:
        same: Samples without a loss.
        regressed: ``regressed`` of these.
        lost: Samples with a loss of ``max_drop``.
        passed: ``pass`` of these.
    """

    same: FloatArray
    regressed: FloatArray
    lost: FloatArray
    passed: FloatArray

    def cells(self, counted: int) -> tuple[str, ...]:
        """Samples and shares in percent, of those that count (1), or of the others (0)."""
        pairs = ((self.regressed, self.same), (self.passed, self.lost))
        return tuple(
            cell
            for hits, total in pairs
            for cell in (f"{total[counted]:.0f}", real.format_share(hits[counted], total[counted]))
        )


def simulate(design: Design, units: int, samples: int) -> Counts:
    """Decide as many checks of a design, each without a loss and at a loss of ``max_drop``."""
    random = np.random.default_rng([zlib.crc32(design.name.encode()), units])
    counts = Counts(*(np.zeros(2) for _ in Counts._fields))
    for _ in range(samples):
        drawn = design.draw(random, 1)
        sums, sizes, truth = drawn.sums[0, 0], drawn.sizes[0], float(drawn.truth[0])
        m = abs(truth) or design.loss
        # A design with a true difference is turned so that it loses; shifted, it loses nothing.
        lost = np.where(truth > 0, -sums, sums) - (0 if truth else m) * sizes
        same = lost + m * sizes
        keys = tuple(f"g{unit}" for unit, size in enumerate(sizes) for _ in range(int(size)))
        is_counted = len(sums) >= MIN_UNITS and np.count_nonzero(same) >= MIN_CHANGED
        counts.same[int(is_counted)] += 1
        counts.regressed[int(is_counted)] += _decide(same, sizes, keys, 0.0) == "regressed"
        is_counted = len(sums) >= MIN_UNITS and np.count_nonzero(lost) >= MIN_CHANGED
        is_counted &= np.count_nonzero(lost < 0) >= LOSING * len(sums)
        counts.lost[int(is_counted)] += 1
        counts.passed[int(is_counted)] += _decide(lost, sizes, keys, m) == "pass"
    return counts


def _decide(sums: FloatArray, sizes: FloatArray, keys: tuple[str, ...], max_drop: float) -> str:
    difference = np.repeat(sums / sizes, sizes.astype(int))
    [row] = infer_family([Pair.from_arrays(difference, keys=keys)])
    return decide_status(row, changed=int(np.count_nonzero(difference)), max_drop=max_drop)


HEADER = (
    *("design", "units", "no loss: samples", "regressed %", "loss of max_drop: samples"),
    *("pass %", "other samples, no loss", "regressed %", "other samples, loss", "pass %"),
)
#: Columns of the page.
SHOWN = ("units", "no loss: regressed %", "worst design", "loss: pass %", "worst design")


def summarize(units: int, rows: Sequence[tuple[str, Counts]]) -> tuple[str, ...]:
    """The row of the page: shares over all designs, and the designs with the highest ones."""
    cells = []
    for hits, total in (("regressed", "same"), ("passed", "lost")):
        pairs = [(name, getattr(each, hits)[1], getattr(each, total)[1]) for name, each in rows]
        known = [pair for pair in pairs if pair[2] >= ENOUGH]
        cells.append(
            real.format_share(sum(pair[1] for pair in known), sum(pair[2] for pair in known))
        )
        name, *worst = max(known, key=lambda pair: pair[1] / pair[2])
        cells.append(f"{real.format_share(*worst)} ({name})")
    return (f"{units:,}", *cells)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all designs, and renew the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000, help="of each design, up to 60 units")
    options = parser.parse_args(arguments)
    table: list[tuple[str, ...]] = [HEADER]
    summary: list[tuple[str, ...]] = []
    for units in SIZES:
        # One sample of 1,000 units takes as long as 15 of 60.
        samples = options.samples // {200: 2, 1_000: 5}.get(units, 1)
        listed = [
            *list_made(units),
            *(d for name in real.COLLECTIONS for d in list_real(name, units)),
        ]
        rows = [(design.name, simulate(design, units, samples)) for design in listed]
        table += [(name, f"{units}", *counts.cells(1), *counts.cells(0)) for name, counts in rows]
        summary.append(summarize(units, rows))
        print(*summary[-1], sep=" | ", flush=True)
    text = f"{format_rows([SHOWN, *summary])}\n\n{write_csv(PAGE, 'promises', table)}\n"
    replace_between_marks(PAGE, text, "gate promises")


if __name__ == "__main__":
    main()
