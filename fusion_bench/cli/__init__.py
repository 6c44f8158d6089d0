"""The command line: one thin file a command, found in this folder by name.

A command decodes its options, makes one call, renders, and returns. Whatever is wrong with the
files it is given ends in one line on standard error and exit code 2.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence

__all__ = ["main"]

FAILED, INTERRUPTED, PIPE_CLOSED = 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line.

    Args:
        arguments: Without the program's name; the process's own by default.

    Returns:
        The exit code.
    """
    from fusion_bench.cli._console import echo_error
    from fusion_bench.errors import FusionBenchError

    _tolerate_narrow_encodings()
    try:
        from fusion_bench.cli._base import app

        app(args=None if arguments is None else list(arguments), prog_name="fusion-bench")
    except SystemExit as stop:
        return _exit_code(stop)
    except (FusionBenchError, OSError) as error:
        echo_error(str(error))
        _drop_unwritten()
        return FAILED
    except MemoryError:
        echo_error("not enough memory for this: use fewer queries, or a machine with more of it")
        return FAILED
    except KeyboardInterrupt:
        echo_error("interrupted")
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - Python's own exit code 1 would say "the gate found a regression"
        traceback.print_exc()
        echo_error(
            "this is a fault of fusion-bench, not of your data: please report the lines above"
        )
        return FAILED
    return 0


def _exit_code(stop: SystemExit) -> int:
    """The exit code of a command that ended itself."""
    if isinstance(stop.__context__, BrokenPipeError):
        return PIPE_CLOSED  # whoever read has gone; Typer says 1, which here means a regression
    if stop.code == INTERRUPTED:
        from fusion_bench.cli._console import echo_error

        echo_error("interrupted")
    return stop.code if isinstance(stop.code, int) else FAILED


def _tolerate_narrow_encodings() -> None:
    """A character that the output cannot hold is replaced, not a reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_unwritten() -> None:
    """What a full disk refused must not be tried again, and fail again, at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
