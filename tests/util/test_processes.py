"""Processes: signals, workers."""

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor

import pytest

from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.util.worker_processes import WorkerProcess
from tests.util import worker_functions

CASE = """
import os, signal, sys, time
from fusion_bench.util import signals

def send(name):
    os.kill(os.getpid(), getattr(signal, name))
    time.sleep(600)

signals.PATIENCE = {patience}
signals.handlers.install()
{code}
print("not reached")
"""
IN_COMMAND = """
try:
    with signals.handlers.raise_in_command():
        send({name!r})
except BaseException as error:
    print(type(error).__name__, flush=True)
    {then}
    raise
"""


def run_case(
    code: str, interrupt: signal.Handlers = signal.SIG_DFL, patience: float = 600
) -> tuple[int, str, str]:
    """How a process ends; ``interrupt``: what it does with Ctrl-C when it starts."""
    words = [sys.executable, "-c", CASE.format(code=code, patience=patience)]
    if interrupt is signal.SIG_IGN:
        words = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *words]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_signal_ends_the_process_and_raises_in_a_command() -> None:
    assert run_case('send("SIGINT")') == (130, "", "error: interrupted\n")
    assert run_case('send("SIGTERM")') == (143, "", "error: terminated\n")
    code, out, _ = run_case(IN_COMMAND.format(name="SIGINT", then="os._exit(7)"))
    assert (code, out) == (7, "KeyboardInterrupt\n")
    case = IN_COMMAND.format(name="SIGTERM", then="")
    assert run_case(case) == (143, "TerminatedError\n", "error: terminated\n")


@pytest.mark.parametrize("then", ["time.sleep(600)", 'send("SIGTERM")'])
def test_a_command_that_does_not_end_is_ended(then: str) -> None:
    case = IN_COMMAND.format(name="SIGTERM", then=then)
    assert run_case(case, patience=2) == (143, "TerminatedError\n", "error: terminated\n")


def test_a_second_ctrl_c_ends_and_an_ignored_one_goes_on() -> None:
    case = IN_COMMAND.format(name="SIGINT", then='send("SIGINT")')
    assert run_case(case) == (130, "KeyboardInterrupt\n", "")
    code, out, _ = run_case("os.kill(os.getpid(), signal.SIGINT)", signal.SIG_IGN)
    assert (code, out) == (0, "not reached\n")


def test_an_object_that_is_half_made_adds_no_line() -> None:
    half = """
class Half:
    def __init__(self):
        send("SIGTERM")
        self.name = "made"
    def __del__(self):
        self.name.upper()

with signals.handlers.raise_in_command():
    Half()
"""
    assert run_case(half) == (143, "", "error: terminated\n")


def test_a_task_under_way_adds_no_line() -> None:
    task = """
import asyncio

async def wait():
    await asyncio.sleep(0)
    send("SIGTERM")

async def work():
    await asyncio.gather(wait(), wait())

with signals.handlers.raise_in_command():
    asyncio.run(work())
"""
    assert run_case(task) == (143, "", "error: terminated\n")


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    with WorkerProcess() as process:
        yield process


def test_a_call_returns_its_value_or_raises_its_error(worker: WorkerProcess) -> None:
    results = [worker.submit(math.sqrt, value) for value in (4.0, -1.0, 9.0)]
    assert results[0].result() == 2.0
    with pytest.raises(ValueError, match="math domain error") as caught:
        results[1].result()
    assert "worker_processes" in "".join(caught.value.__notes__)
    assert results[2].result() == 3.0
    with pytest.raises(ConfigError, match="wrong"):
        worker.submit(worker_functions.raise_error, ConfigError("wrong")).result()


def test_errors_of_a_call_keep_their_text_and_the_worker(worker: WorkerProcess) -> None:
    with pytest.raises(RuntimeError, match="UnreadableError: 3"):
        worker.submit(worker_functions.raise_unreadable).result()
    with pytest.raises((AttributeError, TypeError)):
        worker.submit(lambda: 1).result()
    with pytest.raises(TypeError, match="no keyword arguments"):
        worker.submit(int, base=2)
    assert worker.submit(abs, -1).result() == 1
    assert worker.submit(abs, -3).result() == 3
    os.kill(worker.process_id, signal.SIGINT)
    assert worker.submit(abs, -4).result() == 4


def test_output_of_a_call_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    with WorkerProcess() as worker:
        assert worker.submit(worker_functions.print_and_read).result() == ""
    assert capfd.readouterr() == ("", "from a worker\n")


def test_killed_and_closed_workers_break_their_executor() -> None:
    with WorkerProcess() as worker:
        assert worker.submit(worker_functions.process_id).result() == worker.process_id
        call = worker.submit(worker_functions.sleep_long)
        os.kill(worker.process_id, signal.SIGKILL)
        with pytest.raises(BrokenExecutor):
            call.result()
        with pytest.raises(BrokenExecutor):
            worker.submit(abs, -1).result()
    worker = WorkerProcess()
    call = worker.submit(worker_functions.sleep_long)
    worker.shutdown()
    with pytest.raises(BrokenExecutor):
        call.result()
    with pytest.raises(ProcessLookupError):
        os.kill(worker.process_id, 0)


def test_a_process_that_cannot_be_started_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(FusionBenchError, match="be started: No"):
        WorkerProcess()
