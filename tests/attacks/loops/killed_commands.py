"""A command, or a worker of it, gets a signal at a random moment; its results stay the same."""

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from tests.attacks.project import EVAL, TUNE, UPDATE, make_project
from tests.attacks.runner import LIMIT, read_files, run_here
from tests.attacks.sessions import list_session, start_session
from tests.attacks.torture import Loop, Tally
from tests.child_processes import drop_progress

WORKERS = (*TUNE, "--workers", "2")
COMMANDS = (EVAL, UPDATE, TUNE, WORKERS)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
#: Signals in a round.
KILLS = 3
#: Seconds until the signal at most: a command takes one or two.
LONGEST = 2.5
#: How often a worker gets SIGKILL, and not the command.
WORKER_SHARE = 0.3
#: Fields of a record that differ from run to run.
CHANGING = {"provenance", "look"}


def run_round(seed: int, folder: Path) -> Tally:
    """A command that is ended a few times: what it finally writes is what it always writes."""
    rng = random.Random(seed)
    command = rng.choice(COMMANDS)
    whole = make_project(folder / "whole")
    killed = Path(shutil.copytree(whole, folder / "killed"))
    assert run_here(command, whole).code == 0
    kills = sum(_run_and_kill(command, killed, rng) for _ in range(KILLS))
    outcome = run_here(command, killed)
    if not (command == UPDATE and "nothing to update" in outcome.err):  # a killed one was done
        assert outcome.code == 0, outcome
    assert _comparable(killed) == _comparable(whole), command
    return Tally(kills=kills, inputs=1)


def _run_and_kill(command: tuple[str, ...], root: Path, rng: random.Random) -> bool:
    """Whether it, or a worker, got its signal before it ended; then nobody may hold its output."""
    number = rng.choice(SIGNALS)
    process = start_session(("-m", "fusion_bench", *command), root)
    time.sleep(rng.uniform(0.0, LONGEST))
    workers = list_session(process.pid) if rng.random() < WORKER_SHARE else []
    if workers:
        os.kill(rng.choice(workers), signal.SIGKILL)
        _, err = process.communicate(timeout=LIMIT)
        assert process.returncode == 0, err
        return True
    process.send_signal(number)
    _, err = process.communicate(timeout=LIMIT)
    if process.returncode in {143, 130}:
        lines = drop_progress(err).splitlines()
        assert lines == ["error: terminated" if process.returncode == 143 else "error: interrupted"]
    elif process.returncode != 0:  # Python itself, before the command's first line
        assert process.returncode == -number or "fusion_bench" not in err, err
    return process.returncode != 0


def _comparable(root: Path) -> dict[str, Any]:
    """Each file's name, with the content of a record that is the same in every run."""
    files: dict[str, Any] = {}
    for name, data in read_files(root).items():
        record = json.loads(data) if name.endswith(".json") else None
        if isinstance(record, dict):
            record = {key: value for key, value in record.items() if key not in CHANGING}
        files[name] = record
    return files


LOOP = Loop("killed commands", run_round, test_rounds=0)
