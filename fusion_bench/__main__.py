"""The command ``fusion-bench``, also as ``python -m fusion_bench``.

It handles signals before it imports what takes time.
"""

from __future__ import annotations

import gc
import os
import sys

#: The exit code after Ctrl-C.
INTERRUPTED = 130


def run() -> int:
    """Run the command line as a process of its own; returns the exit code."""
    gc.set_threshold(200_000)  # imports make 400,000 objects that stay
    if "retrieve" not in sys.argv[1:2]:  # elsewhere waiting threads cost more than they compute
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Pydantic would look for plugins in all that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from fusion_bench.util.signals import handlers

        handlers.install()
    except KeyboardInterrupt:
        os.write(2, b"error: interrupted\n")
        os._exit(INTERRUPTED)
    from fusion_bench.cli import main

    code = main()
    gc.freeze()  # the interpreter's end searches for no cycles in what ends with it
    if code == INTERRUPTED:
        # Where Ctrl-C came in code that a string held, such as a dataclass's, Python notes that
        # nobody handled it, and would end by the signal.
        _flush_streams()
        os._exit(code)
    return code


def _flush_streams() -> None:
    import contextlib

    for stream in filter(None, (sys.stdout, sys.stderr)):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


if __name__ == "__main__":
    sys.exit(run())
