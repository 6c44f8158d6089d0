"""Processes that take part in one search through a database, each killed at a chosen moment.

``python -m tests.attacks.killed_searches URL SEED KILLS [COMPANIONS]`` imports what a search needs,
forks and kills so many processes, beside others that go on, and then checks that another one
finishes the search and that no trial is lost. It prints how many were killed at work.
"""

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timedelta

import numpy as np
import optuna
from optuna.storages._rdb.models import TrialHeartbeatModel
from optuna.trial import TrialState
from sqlalchemy import Connection, Engine, NullPool, create_engine, event, text, update
from sqlalchemy.exc import DBAPIError

from fusion_bench.experiment.settings import SearchSettings
from fusion_bench.tune.shared_study import MOST_REPETITIONS, REPEATED, search_shared_study
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
#: Seconds between heartbeats, and after which a process counts as dead.
HEARTBEAT = (1, 60)
ORPHANS = (
    "SELECT count(*) FROM trials WHERE state = 'RUNNING' AND trial_id NOT IN "
    "(SELECT trial_id FROM trial_heartbeats)"
)


def search(url: str, trials: int) -> int:
    """Take part in the search until so many trials are finished; returns how many are."""
    settings = SearchSettings(trials=trials, sampler="tpe")
    result = search_shared_study(OBJECTIVE, KEEP, settings, url, heartbeat=HEARTBEAT)
    return len(result.trials)


def start(url: str, transactions: int | None) -> int:
    """Fork a process that searches without end, or is killed before a transaction."""
    process = os.fork()
    if process == 0:
        try:
            if transactions is not None:
                event.listen(Engine, "commit", _kill_at_commit(transactions))
            search(url, trials=100_000)
        except Exception:  # noqa: BLE001 - only a killed one is as it should be
            traceback.print_exc()
        os._exit(1)
    return process


def run_and_kill(url: str, rng: random.Random) -> bool:
    """Whether a process that searches was killed: before some transaction, or after a time."""
    by_transaction = rng.random() < 0.7
    process = start(url, rng.randint(1, TRANSACTIONS) if by_transaction else None)
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


def query(url: str, statement: str) -> int:
    """The number that a statement gives; 0 where there are no tables yet."""
    with suppress(DBAPIError), connect(url) as connection:
        return int(connection.execute(text(statement)).scalar() or 0)
    return 0


def age_heartbeats(url: str) -> None:
    """As if all processes had been dead for long; those that live have a heartbeat soon."""
    with suppress(DBAPIError), connect(url) as connection:
        connection.execute(
            update(TrialHeartbeatModel).values(heartbeat=datetime.now() - timedelta(days=2))
        )


def connect(url: str) -> AbstractContextManager[Connection]:
    """A transaction that is committed in the end."""
    return create_engine(url, poolclass=NullPool).begin()


def check_trials(url: str) -> None:
    """No trial runs; each preset is done, and each that failed was repeated, or is given up."""
    storage = optuna.storages.RDBStorage(url)
    (study,) = storage.get_all_studies()
    trials = storage.get_all_trials(study._study_id)
    histories = [trial.system_attrs.get(REPEATED, []) for trial in trials]
    given_up, repeated = [], {number for history in histories for number in history}
    for trial, history in zip(trials, histories, strict=True):
        assert trial.state != TrialState.RUNNING, trial
        if trial.state == TrialState.FAIL and trial.number not in repeated:
            assert len(history) >= MOST_REPETITIONS, trial
            given_up.append(trial.system_attrs.get("fixed_params"))
    done = [t.system_attrs.get("fixed_params") for t in trials if t.state in FINISHED]
    for preset in filter(OBJECTIVE.contains, OBJECTIVE.preset_params):
        assert done.count(dict(preset)) + given_up.count(dict(preset)) == 1, preset


FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


def main(url: str, seed: int, kills: int, companions: int = 0) -> None:
    """Kill, check after each kill, and let another process finish the search."""
    rng = random.Random(seed)
    others = [start(url, None) for _ in range(companions)]
    try:
        for _ in range(kills):
            assert run_and_kill(url, rng), "a process ended by itself"
            assert query(url, ORPHANS) == 0, "a trial runs without a heartbeat"
            if rng.random() < 0.3:
                age_heartbeats(url)
    finally:
        for process in others:
            os.kill(process, signal.SIGKILL)
    for process in others:
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    age_heartbeats(url)
    done = query(url, "SELECT count(*) FROM trials WHERE state IN ('COMPLETE', 'PRUNED')")
    assert search(url, done + 4) >= max(done + 4, 4), "the search is not finished"
    check_trials(url)
    sys.stdout.write(f"{kills + companions}\n")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
