"""The command line: one file per command, found by its name in this folder.

A command decodes its options, makes one call, renders the result and exits. An error in its input
ends in one line on standard error and exit code 2; with ``--json`` the line is JSON on standard
output.

A closed stream is taken for one that nobody reads: what is printed is dropped, and the exit code is
the command's. What standard error does not take is dropped, too. Where standard output does not
take a result, the error names it.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TextIO

import typer

from fusion_bench.cli.application.console import echo_error, error_format
from fusion_bench.cli.application.exit_codes import CommandInterruptedError, ExitCode
from fusion_bench.cli.application.progress import progress_lines
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.util.signals import handlers

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


#: Bytes of addresses that NumPy, SciPy and pyarrow need with two threads; with less, libraries of
#: linear algebra end the process or wait without end as they are loaded.
LEAST_ADDRESSES: Final = 480 << 20
#: What an error calls the stream, as it would name a file.
STDOUT_NAME = "standard output"


class _OutputFile(io.FileIO):
    """Standard output; an error names it."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes, and return how many; raises OSError."""
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, STDOUT_NAME) from None


class _ErrorFile(io.FileIO):
    """Standard error; what it does not take is dropped."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes, and return how many there were."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Without the program's name; None = those of the process.

    Returns:
        The exit code.
    """
    _mend_streams()
    given = sys.argv[1:] if arguments is None else list(arguments)
    with error_format(given):
        try:
            _check_address_limit()
            with handlers.raise_in_command(), progress_lines(given[0] if given else ""):
                return _run_command(given)
        except FusionBenchError as error:
            _fail(str(error), **error.facts)
        except OSError as error:
            if _is_reader_gone(error):
                _drop_output()
                return ExitCode.PIPE_CLOSED
            is_on_file = error.filename is not None and error.strerror is not None
            place = f"{error.filename}: " if is_on_file else ""
            _fail(f"{place}{error.strerror or error}")
        except (KeyboardInterrupt, CommandInterruptedError):
            _fail("interrupted")
            return ExitCode.INTERRUPTED
        except SystemExit:
            raise
        except BaseException as error:  # noqa: BLE001 - exit code 1 means a regression
            # Some libraries put an error of their own in the place of Ctrl-C or too little memory.
            causes = list(_list_causes(error))
            if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
                _fail("interrupted")
                return ExitCode.INTERRUPTED
            if any(
                isinstance(each, MemoryError) or "std::bad_alloc" in str(each) for each in causes
            ):
                _fail("not enough memory: use fewer queries or a machine with more memory")
            elif type(error).__name__ == "NoArgsIsHelpError":  # a group without a command: its help
                typer.echo(str(error), err=True)
            else:
                _fail(_describe_exception(error))
    return ExitCode.FAILED


def _run_command(arguments: list[str]) -> int:
    """The exit code of a command that ended by itself; Typer raises its usage errors."""
    from fusion_bench.cli.application.app import app

    for argument in arguments:
        if "\0" in argument:
            raise ConfigError(f"{argument!r}: no argument may hold a null byte")
    try:
        code = app(args=arguments, prog_name="fusion-bench", standalone_mode=False)
    except SystemExit as stop:
        if _is_reader_gone(stop.__context__):  # Typer's code is 1, a regression here
            return ExitCode.PIPE_CLOSED
        is_code = stop.code is None or isinstance(stop.code, int)
        code = stop.code if is_code else ExitCode.FAILED
    if code == ExitCode.INTERRUPTED:
        echo_error("interrupted")
    return code if isinstance(code, int) else 0


def _fail(message: str, **facts: object) -> None:
    """Print an error where the result would stand; on standard error if nothing can stand there.

    Args:
        message: The error.
        facts: What ``--json`` says beside it.
    """
    try:
        echo_error(message, replaces_result=True, facts=facts)
    except OSError:
        echo_error(message, facts=facts)
    _drop_output()


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what is behind it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _describe_exception(error: BaseException) -> str:
    """A usage error of Typer, or the traceback of a bug and what to do about it."""
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        remedy = f" (see {context.command_path} --help)" if context else ""
        text = str(error.format_message()).rstrip(".")
        return f"{text.replace(': Value error, ', ': ', 1)}{remedy}"  # pydantic's words
    traceback.print_exc()
    return "this is a bug in fusion-bench: please report the lines above"


def _check_address_limit() -> None:
    """Refuse to start where ``ulimit -v`` allows too little.

    Raises:
        FusionBenchError: It does.
    """
    try:
        import resource
    except ImportError:  # not on Windows, which has no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESSES:
        raise FusionBenchError(
            f"not enough memory: the process may have {limit >> 20} MiB of addresses (ulimit -v), "
            f"and needs {LEAST_ADDRESSES >> 20} MiB: raise the limit"
        )


def _mend_streams() -> None:
    """Replace the standard streams of the process by such as can be closed or full.

    Streams that somebody else has put in their place stay, but for their treatment of characters
    that they cannot encode: those are replaced.
    """
    for number in (0, 1, 2):  # what is opened next must not become a standard stream
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    sys.stdout = _mend_stream(sys.stdout, sys.__stdout__, _OutputFile, 1)
    sys.stderr = _mend_stream(sys.stderr, sys.__stderr__, _ErrorFile, 2)


def _drop_output() -> None:
    """Drop what standard output has not taken, so that flushing it at exit does not fail."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_reader_gone(error: BaseException | None) -> bool:
    """Whether an error says that nobody reads standard output any more."""
    return (
        isinstance(error, OSError) and error.errno == errno.EPIPE and error.filename == STDOUT_NAME
    )


def _mend_stream(
    stream: TextIO | None, original: TextIO | None, kind: type[io.FileIO], number: int
) -> TextIO:
    if stream is None:  # Python found it closed
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - until the process ends
    if isinstance(stream, io.TextIOWrapper):
        if stream is original:
            stream.flush()
            raw = kind(number, "w", closefd=False)
            return io.TextIOWrapper(
                io.BufferedWriter(raw),
                encoding=stream.encoding,
                errors="replace",
                line_buffering=stream.line_buffering,
            )
        stream.reconfigure(errors="replace")
    return stream
