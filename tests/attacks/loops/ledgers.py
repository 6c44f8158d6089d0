"""Ledgers of looks and of candidates with damaged lines: each is refused, or its loss is seen."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from fusion_bench.errors import DataError
from fusion_bench.gate.baseline_files import CANDIDATES, CheckedCandidate, append_candidate
from fusion_bench.io.looks import LedgerEntry, format_line, read_looks, update_ledger
from tests.attacks.torture import Loop, Tally
from tests.tune.cases import make_look

INPUTS = 60
Line = TypeVar("Line", LedgerEntry, CheckedCandidate)


def run_round(seed: int, folder: Path) -> Tally:
    """Sixty ledgers of each kind, some merged from two branches, each with one damage."""
    rng = random.Random(seed)
    for number in range(INPUTS):
        path = folder / f"{number}.jsonl"
        make_ledger(path, rng, _add_look)
        check_damage(path, rng, read_looks)
        path.unlink()
        make_ledger(path, rng, _add_candidate)
        check_damage(path, rng, CANDIDATES.read)
    return Tally(inputs=2 * INPUTS)


def make_ledger(path: Path, rng: random.Random, append: Callable[..., None]) -> None:
    """Lines of an earlier version, new ones, and now and then those of two branches."""
    for _ in range(rng.choice([0, 0, 1, 3])):
        append(path, rng, is_old=True)
    for _ in range(rng.randint(1, 4)):
        append(path, rng)
    if rng.random() < 0.5:
        shared, sides = path.read_text(), []
        for _ in range(2):
            path.write_text(shared)
            for _ in range(rng.randint(1, 3)):
                append(path, rng)
            sides.append(path.read_text().removeprefix(shared))
        path.write_text(shared + "".join(sides))
        append(path, rng)


def check_damage(path: Path, rng: random.Random, read: Callable[[Path], Sequence[Line]]) -> None:
    """Remove, move or edit lines: it is refused, or no line is lost, or the last one is.

    The last line is the one that a report or a baseline relies on.
    """
    whole = read(path)
    lines = path.read_text().splitlines(keepends=True)
    damaged = _damage(lines, rng)
    path.write_text("".join(damaged))
    with suppress(DataError):
        known = {line.digest for line in read(path)}
        is_whole = known == {line.digest for line in whole}
        assert is_whole or whole[-1].digest not in known, (lines, damaged)


def _damage(lines: list[str], rng: random.Random) -> list[str]:
    kept = list(lines)
    place = rng.randrange(len(kept))
    kind = rng.choice(["remove", "cut", "empty", "swap", "edit", "digit"])
    if kind == "remove":
        del kept[place]
    elif kind == "cut":
        del kept[place:]
    elif kind == "empty":
        kept.clear()
    elif kind == "swap":
        other = rng.randrange(len(kept))
        kept[place], kept[other] = kept[other], kept[place]
    elif kind == "edit":
        kept[place] = kept[place].replace("2026", "2027", 1)
    else:
        digits = [i for i, letter in enumerate(kept[place]) if letter.isdigit()]
        spot = rng.choice(digits)
        digit = str((int(kept[place][spot]) + 1) % 10)
        kept[place] = f"{kept[place][:spot]}{digit}{kept[place][spot + 1 :]}"
    return kept


def _add_look(path: Path, rng: random.Random, *, is_old: bool = False) -> None:
    look = make_look("a", version=2 if is_old else 3, numbers=f"{rng.getrandbits(64):x}")
    if is_old:
        with path.open("a") as file:
            file.write(format_line(look))
    else:
        update_ledger(path, lambda looks: [*looks, look])


def _add_candidate(path: Path, rng: random.Random, *, is_old: bool = False) -> None:
    line = CheckedCandidate(
        baseline="b", candidate=f"{rng.getrandbits(64):x}", system="s", checked_at="2026-01-01"
    )
    if is_old:
        with path.open("a") as file:
            file.write(f"{line.model_dump_json(exclude={'line', 'previous'})}\n")
    else:
        append_candidate(path, line, CANDIDATES.read(path))


LOOP = Loop("ledgers", run_round)
