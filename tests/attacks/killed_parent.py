"""A process that starts workers and keeps them busy until it gets a signal.

``python -m tests.attacks.killed_parent COUNT`` handles signals as a command does.
"""

import os
import sys
from contextlib import ExitStack

from fusion_bench.util.signals import handlers
from fusion_bench.util.worker_processes import WorkerProcess

if __name__ == "__main__":
    handlers.install()
    with handlers.raise_in_command(), ExitStack() as stack:
        workers = [stack.enter_context(WorkerProcess()) for _ in range(int(sys.argv[1]))]
        while True:
            calls = [worker.submit(sum, range(10**6)) for worker in workers]
            calls += [worker.submit(os.getpid) for worker in workers]
            for call in calls:
                call.result()
