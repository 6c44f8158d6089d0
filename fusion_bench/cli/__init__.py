"""The command line: one file per command, found by its name in this folder.

A command decodes its options, makes one call, renders the result and exits. An error in its input
ends in one line on standard error and exit code 2.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence

from fusion_bench.cli._console import echo_error
from fusion_bench.errors import FusionBenchError

FAILED, INTERRUPTED, PIPE_CLOSED = 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Without the program's name; None = those of the process.

    Returns:
        The exit code.
    """
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
        echo_error("not enough memory: use fewer queries or a machine with more memory")
        return FAILED
    except KeyboardInterrupt:
        echo_error("interrupted")
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - exit code 1 means a regression
        traceback.print_exc()
        echo_error("this is a bug in fusion-bench: please report the lines above")
        return FAILED
    return 0


def _exit_code(stop: SystemExit) -> int:
    """The exit code of a command that raised SystemExit."""
    if isinstance(stop.__context__, BrokenPipeError):
        return PIPE_CLOSED  # the reader has gone; Typer exits with 1, which means a regression here
    if stop.code == INTERRUPTED:
        echo_error("interrupted")
    return stop.code if isinstance(stop.code, int) else FAILED


def _tolerate_narrow_encodings() -> None:
    """Replace characters that the output cannot encode, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_unwritten() -> None:
    """Drop what a full disk refused, so that flushing at exit does not fail again."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
