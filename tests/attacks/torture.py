"""Loops of attacks at random places, a few rounds of each in the tests and an hour at will.

``python -m tests.attacks.torture --minutes 60`` runs one round after the other, from the loop that
had the least time, and ends with a line ``survived: K kills, N inputs, F faults``. A round that
fails is printed with its loop and its seed, which repeat it: ``--only LOOP --first-seed N``. The
exit code is 1 if any failed.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tests.attacks import loops

#: Seconds after which a round hangs.
ROUND_LIMIT = 600


@dataclass(frozen=True)
class Tally:
    """How many attacks of each kind were survived."""

    kills: int = 0
    inputs: int = 0
    faults: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.kills + other.kills, self.inputs + other.inputs, self.faults + other.faults
        )

    def __str__(self) -> str:
        return f"survived: {self.kills:,} kills, {self.inputs:,} inputs, {self.faults:,} faults"


@dataclass(frozen=True)
class Loop:
    """An attack that is repeated at random places.

    Attributes:
        name: What a report calls it.
        run_round: One round: a seed, and an empty folder → what was survived. Raises what it finds.
        test_rounds: Rounds in the tests, whose seeds are 0, 1, …; 0 = `make torture` alone.
    """

    name: str
    run_round: Callable[[int, Path], Tally]
    test_rounds: int = 1


def list_loops() -> list[Loop]:
    """The ``LOOP`` of each module in ``tests/attacks/loops``."""
    names = sorted(module.name for module in pkgutil.iter_modules(loops.__path__))
    return [importlib.import_module(f"{loops.__name__}.{name}").LOOP for name in names]


def run_loops(chosen: list[Loop], seconds: float, first_seed: int = 0) -> tuple[Tally, int]:
    """Run rounds for a time; the tally of those that were survived, and how many were not."""
    signal.signal(signal.SIGALRM, _raise_timeout)
    spent = dict.fromkeys((loop.name for loop in chosen), 0.0)
    seeds = dict.fromkeys(spent, first_seed)
    total, failures = Tally(), 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        loop = min(chosen, key=lambda loop: spent[loop.name])
        begin, seed = time.monotonic(), seeds[loop.name]
        seeds[loop.name] += 1
        try:
            signal.alarm(ROUND_LIMIT)
            with tempfile.TemporaryDirectory(prefix="torture-") as folder:
                total += loop.run_round(seed, Path(folder))
        except Exception:  # noqa: BLE001 - whatever went wrong is what is looked for
            failures += 1
            sys.stdout.write(f"FAILED {loop.name}, seed {seed}:\n{traceback.format_exc()}\n")
            sys.stdout.flush()
        finally:
            signal.alarm(0)
        spent[loop.name] += time.monotonic() - begin
    rounds = ", ".join(f"{name} {seeds[name] - first_seed}" for name in seeds)
    sys.stdout.write(f"rounds: {rounds}\n")
    return total, failures


def _raise_timeout(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"a round took more than {ROUND_LIMIT} s")


def main() -> int:
    """Read the options, run the loops, print what was survived."""
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", metavar="LOOP", action="append", default=[])
    given = parser.parse_args()
    chosen = [loop for loop in list_loops() if not given.only or loop.name in given.only]
    if not chosen:
        parser.error(f"no such loop (known: {', '.join(loop.name for loop in list_loops())})")
    tally, failures = run_loops(chosen, given.minutes * 60, given.first_seed)
    sys.stdout.write(f"{tally}\n" if not failures else f"{tally}; not survived: {failures}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
