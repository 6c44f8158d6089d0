"""The disk is full from a random change or size on, and there is room again for the next run."""

from __future__ import annotations

import atexit
import json
import random
from functools import cache
from pathlib import Path

from tests.attacks.fork_server import ForkServer
from tests.attacks.project import EVAL, EXPERIMENT, TUNE, make_project
from tests.attacks.runner import read_files
from tests.attacks.torture import Loop, Tally

UPDATE = ("gate", EXPERIMENT, "--update", "--reason")
COMMANDS = (EVAL, UPDATE, TUNE)
FAULTS = 4


def run_round(seed: int, folder: Path) -> Tally:
    """Let a command fail a few times at different places, then repeat it on a good disk."""
    rng = random.Random(seed)
    command = COMMANDS[seed % len(COMMANDS)]
    root = make_project(folder / "project")
    marker = folder / "failed"
    faults = 0
    server = start_server()
    for number in range(FAULTS):
        known = read_files(root)
        size = rng.choice((None, None, 1_000, 5_000, 20_000))
        fault: tuple[str, *tuple[object, ...]] = ("limit_file_size", size)
        if size is None:
            fault = ("fail_at_change", rng.randrange(30), str(marker))
        outcome = server.run(complete(command, number), root, before=fault)
        about = (command, fault, outcome)
        assert "Traceback" not in outcome.err, about
        assert outcome.code in (0, 2), about
        if outcome.code == 2:
            faults += 1
            assert outcome.err.startswith("error: "), about
            assert outcome.err.count("\n") == 1, about
            assert "Errno" not in outcome.err, about
            check_whole(known, read_files(root), about)
        marker.unlink(missing_ok=True)
    outcome = server.run(complete(command, FAULTS), root)
    assert outcome.code == 0, (command, outcome)
    return Tally(faults=faults)


@cache
def start_server() -> ForkServer:
    """One server for all rounds."""
    server = ForkServer()
    atexit.register(server.close)
    return server


def complete(command: tuple[str, ...], number: int) -> tuple[str, ...]:
    """The command; each update has a reason of its own."""
    return (*command, f"try {number}") if command == UPDATE else command


def check_whole(known: dict[str, bytes], after: dict[str, bytes], about: object) -> None:
    """No draft is left, nothing that was there is gone, and each record is whole."""
    drafts = [name for name in after if name.endswith(".part")]
    assert not drafts, (drafts, about)
    lost = known.keys() - after.keys()
    assert not lost, (lost, about)
    for name, data in after.items():
        if name.endswith(".json"):
            json.loads(data)


LOOP = Loop("full disk", run_round, test_rounds=1)
