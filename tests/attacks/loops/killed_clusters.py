"""A process with a Dask cluster of its own gets a signal: its workers end with it."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import IO, cast

from tests.attacks.runner import LIMIT
from tests.attacks.sessions import list_session, start_session
from tests.attacks.torture import Loop, Tally
from tests.child_processes import drop_progress

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
#: Signals in a round of ``make torture``.
KILLS = 8
#: Seconds until the signal at most: a cluster starts within two or three.
LONGEST = 5.0
#: Seconds after the parent's end within which no worker is left.
LEFT_SECONDS = 2.0


def run_round(seed: int, folder: Path) -> Tally:
    """A few clusters; in the tests one that is killed while it is busy."""
    rng = random.Random(seed)
    if "PYTEST_CURRENT_TEST" in os.environ:
        _kill_cluster(folder, signal.SIGKILL, 1, None, LIMIT)
        return Tally(kills=1)
    for _ in range(KILLS):
        pause = rng.choice([None, rng.uniform(0.0, LONGEST)])
        _kill_cluster(folder, rng.choice(SIGNALS), rng.randint(1, 3), pause, LEFT_SECONDS)
    return Tally(kills=KILLS)


def _kill_cluster(
    folder: Path, number: signal.Signals, count: int, pause: float | None, seconds: float
) -> None:
    """Start a cluster and end its parent: nothing is left some seconds later.

    Args:
        folder: Where it runs.
        number: The signal.
        count: Workers.
        pause: Seconds until the signal; None = once the workers are busy.
        seconds: Within which all workers end.
    """
    parent = start_session(("-m", "tests.attacks.killed_cluster", str(count)), folder)
    if pause is None:
        assert cast("IO[str]", parent.stdout).readline() == "busy\n"
    else:
        time.sleep(pause)
    parent.send_signal(number)
    parent.wait(LIMIT)
    end = time.monotonic() + seconds
    while (left := list_session(parent.pid)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left
    _, err = parent.communicate()
    if parent.returncode != -number:  # or Python itself was ended, while it started
        assert parent.returncode == 128 + number, (number, err)
        words = {signal.SIGTERM: "error: terminated\n", signal.SIGINT: ""}
        assert drop_progress(err) in {words[number], "error: interrupted\n"}, err


LOOP = Loop("killed clusters", run_round)
