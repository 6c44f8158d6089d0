"""What Ctrl-C and SIGTERM do before, in and after a command."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

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


def test_before_a_command_a_signal_ends_the_process() -> None:
    assert run_case('send("SIGINT")') == (130, "", "error: interrupted\n")
    assert run_case('send("SIGTERM")') == (143, "", "error: terminated\n")


def test_in_a_command_a_signal_raises() -> None:
    code, out, _ = run_case(IN_COMMAND.format(name="SIGINT", then="os._exit(7)"))
    assert (code, out) == (7, "KeyboardInterrupt\n")
    case = IN_COMMAND.format(name="SIGTERM", then="")
    assert run_case(case) == (143, "SystemExit\n", "error: terminated\n")


@pytest.mark.parametrize("then", ["time.sleep(600)", 'send("SIGTERM")'])
def test_a_command_that_does_not_end_is_ended(then: str) -> None:
    case = IN_COMMAND.format(name="SIGTERM", then=then)
    assert run_case(case, patience=2) == (143, "SystemExit\n", "error: terminated\n")


def test_a_second_ctrl_c_ends_the_process_without_another_line() -> None:
    case = IN_COMMAND.format(name="SIGINT", then='send("SIGINT")')
    assert run_case(case) == (130, "KeyboardInterrupt\n", "")


def test_a_job_that_ignores_ctrl_c_goes_on_ignoring_it() -> None:
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
