"""The command ``fusion-bench``, also as ``python -m fusion_bench``.

It handles signals before it imports what takes time.
"""

from __future__ import annotations

import os
import sys


def run() -> int:
    """Run the command line as a process of its own; returns the exit code."""
    try:
        from fusion_bench.util.processes.signals import handlers

        handlers.install()
    except KeyboardInterrupt:
        os.write(2, b"error: interrupted\n")
        os._exit(130)
    from fusion_bench.cli import main

    return main()


if __name__ == "__main__":
    sys.exit(run())
