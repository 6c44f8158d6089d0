"""A process that starts a Dask cluster and keeps its workers busy until it gets a signal.

``python -m tests.attacks.killed_cluster COUNT`` handles signals as a command does. It says ``busy``
whenever all workers have answered.
"""

from __future__ import annotations

import os
import sys

from fusion_bench.util.signals import handlers


def main(count: int) -> None:
    """Start the workers, and give them calls without end that let no other thread run."""
    from fusion_bench.tune.distribution import connect_cluster

    with connect_cluster(f"local:{count}") as pool:
        while True:
            pool.run(sum, [(worker, range(5_000_000)) for worker in range(count)])
            os.write(1, b"busy\n")


if __name__ == "__main__":
    handlers.install()
    try:
        with handlers.raise_in_command():
            main(int(sys.argv[1]))
    except KeyboardInterrupt:
        os._exit(130)
