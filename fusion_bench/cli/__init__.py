"""The command line: one file per command, found by its name in this folder.

A command decodes its options, makes one call, renders the result and exits. An error in its input
ends in one line on standard error and exit code 2; with ``--json`` the line is JSON on standard
output.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import typer

from fusion_bench.cli.application import process
from fusion_bench.cli.application.console import echo_error
from fusion_bench.cli.application.progress import progress_lines
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.util.signals import handlers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Without the program's name; None = those of the process.

    Returns:
        The exit code.
    """
    process.mend_streams()
    given = sys.argv[1:] if arguments is None else list(arguments)
    with process.error_format(given):
        try:
            process.check_address_limit()
            with handlers.raise_in_command(), progress_lines(given[0] if given else ""):
                return _run_command(given)
        except FusionBenchError as error:
            _fail(str(error))
        except OSError as error:
            if process.is_reader_gone(error):
                process.drop_output()
                return process.ExitCode.PIPE_CLOSED
            _fail(process.describe_os_error(error))
        except (KeyboardInterrupt, process.CommandInterruptedError):
            _fail("interrupted")
            return process.ExitCode.INTERRUPTED
        except Exception as error:  # noqa: BLE001 - exit code 1 means a regression
            if _is_interrupted(error):
                _fail("interrupted")
                return process.ExitCode.INTERRUPTED
            if process.is_out_of_memory(error):
                _fail("not enough memory: use fewer queries or a machine with more memory")
            elif type(error).__name__ == "NoArgsIsHelpError":  # a group without a command: its help
                typer.echo(str(error), err=True)
            else:
                _fail(_describe_exception(error))
    return process.ExitCode.FAILED


def _run_command(arguments: list[str]) -> int:
    """The exit code of a command that ended by itself; Typer raises its usage errors."""
    from fusion_bench.cli.application.app import app

    for argument in arguments:
        if "\0" in argument:
            raise ConfigError(f"{argument!r}: no argument may hold a null byte")
    try:
        code = app(args=arguments, prog_name="fusion-bench", standalone_mode=False)
    except SystemExit as stop:
        if process.is_reader_gone(stop.__context__):  # Typer's code is 1, a regression here
            return process.ExitCode.PIPE_CLOSED
        is_code = stop.code is None or isinstance(stop.code, int)
        code = stop.code if is_code else process.ExitCode.FAILED
    if code == process.ExitCode.INTERRUPTED:
        echo_error("interrupted")
    return code if isinstance(code, int) else 0


def _fail(message: str) -> None:
    """Print an error where the result would stand; on standard error if nothing can stand there."""
    try:
        echo_error(message, replaces_result=True)
    except OSError:
        echo_error(message)
    process.drop_output()


def _is_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: some libraries put an error of their own in its place."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _describe_exception(error: Exception) -> str:
    """A usage error of Typer, or the traceback of a bug and what to do about it."""
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        remedy = f" (see {context.command_path} --help)" if context else ""
        text = str(error.format_message()).rstrip(".")
        return f"{text.replace(': Value error, ', ': ', 1)}{remedy}"  # pydantic's words
    traceback.print_exc()
    return "this is a bug in fusion-bench: please report the lines above"
