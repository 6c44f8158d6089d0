"""A few bytes of an experiment, a dataset or a list are changed, and ``eval`` runs."""

import random
from pathlib import Path

from tests import tiny
from tests.attacks.runner import read_files, run_here
from tests.attacks.torture import Loop, Tally

FILES = sorted(tiny.FILES)
#: What stands where something else stood.
PIECES = (
    *(b"", b" ", b"\n", b"\t", b"\0", b":", b"-", b"[", b"{", b"&a ", b"*a ", b"!!set ", b"\xff"),
    *(b"-1", b"1e999", b"nan", b"true", b"null", b"0x10", b"1_000", b"9" * 30, b"\xe2\x80\xae"),
)
INPUTS = 20


def run_round(seed: int, folder: Path) -> Tally:
    """Twenty damaged projects: each is evaluated, or refused in one line with nothing written."""
    rng = random.Random(seed)
    for _ in range(INPUTS):
        tiny.make(folder)
        path = folder / rng.choice(FILES)
        path.write_bytes(_mutate(path.read_bytes(), rng))
        before = read_files(folder)
        outcome = run_here(("eval", tiny.EXPERIMENT, "--no-plots", "--out", "out"), folder)
        about = (path.name, path.read_bytes(), outcome)
        assert outcome.code in (0, 2), about
        assert "Traceback" not in outcome.err, about
        if outcome.code == 2:
            assert outcome.err.startswith("error: "), about
            assert outcome.err.count("\n") == 1, about
            assert outcome.out == "", about
            assert read_files(folder) == before, about
        for name in read_files(folder / "out"):
            (folder / "out" / name).unlink()
    return Tally(inputs=INPUTS)


def _mutate(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 0, 1, 1, 2, 8, 40)))
        data = data[:start] + rng.choice(PIECES) + data[end:]
    return data


LOOP = Loop("mutated files", run_round, test_rounds=2)
