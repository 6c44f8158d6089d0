"""Processes that take part in one search through a database, each killed at a chosen moment.

``python -m tests.attacks.killed_searches DATABASE SEED KILLS`` imports what a search needs, forks
and kills so many processes, and then checks that another one finishes the search and takes up every
trial. It prints how many were killed while they were at work.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
from sqlalchemy import Connection, Engine, event

from fusion_bench.experiment.tune_settings import SearchSettings
from fusion_bench.tune.search.shared_study import search_shared_study
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

OBJECTIVE = problem(
    system({"method": "rrf_v2"}, {**BLEND, "method": "position_aware"}), runs=aligned(24)
)
KEEP = np.ones(24, dtype=bool)
#: Transactions of a process until it has finished a few trials.
TRANSACTIONS = 60
#: Seconds after which a process is killed at the latest, and those of a short one.
LONGEST, SHORTEST = 60.0, 0.5
ORPHANS = (
    "SELECT count(*) FROM trials WHERE state = 'RUNNING' AND trial_id NOT IN "
    "(SELECT trial_id FROM trial_heartbeats)"
)


def search(database: Path, trials: int) -> int:
    """Take part in the search until so many trials are finished; returns how many are."""
    settings = SearchSettings(trials=trials)
    url = f"sqlite:///{database}"
    result = search_shared_study(OBJECTIVE, KEEP, settings, url, heartbeat=(1, 60))
    return len(result.trials)


def run_and_kill(database: Path, rng: random.Random) -> bool:
    """Fork a process that searches, and kill it: before some transaction, or after a time."""
    by_transaction = rng.random() < 0.7
    process = os.fork()
    if process == 0:
        with suppress(Exception):
            if by_transaction:
                event.listen(Engine, "commit", _kill_at_commit(rng.randint(1, TRANSACTIONS)))
            search(database, trials=100_000)
        os._exit(1)  # refused: only a killed one is as it should be
    if not by_transaction:
        time.sleep(rng.uniform(0.0, SHORTEST))
        os.kill(process, signal.SIGKILL)
    end = time.monotonic() + LONGEST
    while not (done := os.waitpid(process, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(done[1]) == -signal.SIGKILL


def _kill_at_commit(number: int) -> Callable[[Connection], None]:
    """A listener that kills this process before its n-th transaction is committed."""
    waiting = iter(range(number, 0, -1))

    def count(_: Connection) -> None:
        if next(waiting) == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def query(database: Path, statement: str) -> int:
    """The number that a statement gives; 0 where there are no tables yet."""
    with closing(sqlite3.connect(database)) as connection, connection:
        try:
            row = connection.execute(statement).fetchone()
        except sqlite3.OperationalError:
            return 0
        return int(row[0]) if row else 0


def main(database: Path, seed: int, kills: int) -> None:
    """Kill, check after each kill, and let another process finish the search."""
    rng = random.Random(seed)
    for _ in range(kills):
        assert run_and_kill(database, rng), "a process ended by itself"
        assert query(database, ORPHANS) == 0, "a trial runs without a heartbeat"
    # As if the last heartbeats were an hour old.
    query(database, "UPDATE trial_heartbeats SET heartbeat = datetime('now', '-1 hour')")
    done = query(database, "SELECT count(*) FROM trials WHERE state IN ('COMPLETE', 'PRUNED')")
    assert search(database, done + 4) == max(done + 4, 4), "the search is not finished"
    assert query(database, "SELECT count(*) FROM trials WHERE state = 'RUNNING'") == 0
    sys.stdout.write(f"{kills}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
