"""Processes of a shared search are killed, also between the start of a trial and its heartbeat."""

import os
import subprocess
import sys
from pathlib import Path

from tests.attacks.runner import LIMIT, child_environment
from tests.attacks.torture import Loop, Tally

#: Kills in a round of ``make torture`` and of the tests.
KILLS = 20
TEST_KILLS = 2


def run_round(seed: int, folder: Path) -> Tally:
    """A search whose processes are killed: the next one finishes it, and loses no trial."""
    kills = TEST_KILLS if "PYTEST_CURRENT_TEST" in os.environ else KILLS
    return kill_searches(f"sqlite:///{folder / 's.db'}", seed, kills)


def kill_searches(url: str, seed: int, kills: int, companions: int = 0) -> Tally:
    """Kill processes in a process of its own, which has no threads before it forks."""
    numbers = map(str, (seed, kills, companions))
    done = subprocess.run(
        [sys.executable, "-m", "tests.attacks.killed_searches", url, *numbers],
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT * 4,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Tally(kills=int(done.stdout))


LOOP = Loop("killed searches", run_round)
