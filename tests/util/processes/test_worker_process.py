"""A worker process answers calls, keeps its output apart, and is replaced when it is lost."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor

import pytest

from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.util.worker_processes import WorkerProcess
from tests.util.processes import worker_functions


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


def test_an_error_that_cannot_be_read_back_keeps_its_text(worker: WorkerProcess) -> None:
    with pytest.raises(RuntimeError, match="UnreadableError: 3"):
        worker.submit(worker_functions.raise_unreadable).result()


def test_what_cannot_be_sent_is_an_error_of_the_call_alone(worker: WorkerProcess) -> None:
    with pytest.raises((AttributeError, TypeError)):
        worker.submit(lambda: 1).result()
    with pytest.raises(TypeError, match="no keyword arguments"):
        worker.submit(int, base=2)
    assert worker.submit(abs, -1).result() == 1


def test_output_of_a_call_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    with WorkerProcess() as worker:
        assert worker.submit(worker_functions.print_and_read).result() == ""
    assert capfd.readouterr() == ("", "from a worker\n")


def test_a_killed_worker_breaks_its_executor() -> None:
    with WorkerProcess() as worker:
        assert worker.submit(worker_functions.process_id).result() == worker.process_id
        call = worker.submit(worker_functions.sleep_long)
        os.kill(worker.process_id, signal.SIGKILL)
        with pytest.raises(BrokenExecutor):
            call.result()
        with pytest.raises(BrokenExecutor):
            worker.submit(abs, -1).result()


def test_closing_gives_up_the_call_under_way() -> None:
    worker = WorkerProcess()
    call = worker.submit(worker_functions.sleep_long)
    worker.shutdown()
    with pytest.raises(BrokenExecutor):
        call.result()
    with pytest.raises(ProcessLookupError):
        os.kill(worker.process_id, 0)


def test_ctrl_c_does_not_end_a_worker(worker: WorkerProcess) -> None:
    assert worker.submit(abs, -3).result() == 3
    os.kill(worker.process_id, signal.SIGINT)
    assert worker.submit(abs, -4).result() == 4


def test_a_process_that_cannot_be_started_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(FusionBenchError, match="be started: No"):
        WorkerProcess()
