"""Processes that start at once: forks of one that has imported the package.

A start of Python and of the package takes longer than most commands. The server reads a request a
line from standard input, forks, and answers with the exit code of the child. Nothing has run in
the server but imports, so a child differs from a process of its own only in what was imported.
"""

import importlib
import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, cast

from fusion_bench.cli.application import progress
from tests.attacks.attack import Outcome
from tests.attacks.runner import LIMIT, child_environment

#: What stands behind a standard stream: a file, nothing, a full device, a pipe nobody reads.
Stream: TypeAlias = Literal["file", "closed", "full", "gone"]


class ForkServer:
    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.attacks.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=child_environment(),
            start_new_session=True,
        )

    def run(
        self,
        arguments: Sequence[str],
        root: Path,
        environment: Mapping[str, str] | None = None,
        *,
        out: Stream = "file",
        err: Stream = "file",
        before: tuple[str, *tuple[Any, ...]] | None = None,
    ) -> Outcome:
        """Run a command in a fork and wait for its end.

        Args:
            arguments: Its words, without the program's name.
            root: The folder that it runs in.
            environment: What changes in the environment.
            out: Standard output.
            err: Standard error.
            before: The name of a function of ``tests.attacks.faults`` that the fork calls before
                the command, and its arguments.

        Raises:
            TimeoutError: It hangs; the server is gone.
        """
        with tempfile.TemporaryDirectory() as folder:
            files = {1: Path(folder) / "out", 2: Path(folder) / "err"}
            request = {
                "arguments": list(arguments),
                "root": str(root),
                "environment": dict(environment or {}),
                "streams": [[1, out, str(files[1])], [2, err, str(files[2])]],
                "before": before,
            }
            cast("IO[str]", self._server.stdin).write(json.dumps(request) + "\n")
            cast("IO[str]", self._server.stdin).flush()
            answers = cast("IO[str]", self._server.stdout)
            if not select.select([answers], [], [], LIMIT)[0]:
                os.killpg(self._server.pid, signal.SIGKILL)
                raise TimeoutError(f"{list(arguments)} takes more than {LIMIT} s")
            code = int(answers.readline())
            texts = [
                file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
                for file in files.values()
            ]
        return Outcome(code, *texts)

    def close(self) -> None:
        cast("IO[str]", self._server.stdin).close()
        cast("IO[str]", self._server.stdout).close()
        self._server.wait(LIMIT)


def _serve() -> None:
    sys.dont_write_bytecode = True
    commands = importlib.import_module("fusion_bench.cli").__path__
    for module in pkgutil.iter_modules(commands):
        importlib.import_module(f"fusion_bench.cli.{module.name}")
    progress.LINE_INTERVAL = 1e6  # no stall of the machine adds to standard error
    for name in ("evaluation.run_experiment", "gate.run", "report.write"):
        importlib.import_module(f"fusion_bench.{name}")
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            answers.close()
            os.closerange(3, 20)
            _run_child(json.loads(line))
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        answers.flush()


def _run_child(request: dict[str, Any]) -> None:
    code = 120  # that of Python where a stream cannot be flushed at exit
    try:
        os.chdir(request["root"])
        os.environ.update(request["environment"])
        for number, stream, file in request["streams"]:
            _open_stream(number, stream, file)
        if request["before"]:
            name, *arguments = request["before"]
            getattr(importlib.import_module("tests.attacks.faults"), name)(*arguments)
        code = importlib.import_module("fusion_bench.cli").main(request["arguments"])
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - a command that raises has failed its attack
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _open_stream(number: int, stream: Stream, file: str) -> None:
    name = "stdout" if number == 1 else "stderr"
    if stream == "closed":
        os.close(number)
        setattr(sys, name, None)
        setattr(sys, f"__{name}__", None)
        return
    if stream == "gone":
        reader, opened = os.pipe()
        os.close(reader)
    else:
        place = "/dev/full" if stream == "full" else file
        opened = os.open(place, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(opened, number)
    os.close(opened)


if __name__ == "__main__":
    _serve()
