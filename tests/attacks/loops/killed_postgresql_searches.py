"""Processes of a search that share a real PostgreSQL are killed beside others that go on."""

from pathlib import Path

from tests.attacks.loops.killed_searches import kill_searches
from tests.attacks.torture import Loop, Tally
from tests.postgres import running_postgres

KILLS, COMPANIONS = 20, 2


def run_round(seed: int, folder: Path) -> Tally:  # noqa: ARG001 - the server has its own
    """As on SQLite; the locks of killed processes must not stop the others."""
    with running_postgres() as address:
        url = address.replace("postgresql://", "postgresql+psycopg2://")
        return kill_searches(url, seed, KILLS, COMPANIONS)


# Starting the server costs more than the tests have time for.
LOOP = Loop("killed PostgreSQL searches", run_round, test_rounds=0)
