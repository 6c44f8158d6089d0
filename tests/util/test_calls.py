"""Code of users in threads and in the event loop: what it returns, and what it may raise."""

import asyncio
import threading
from typing import Any

import pytest

from fusion_bench.util.calls import call_function


class Asynchronous:
    async def __call__(self, value: int) -> int:
        return value + 1


async def add_one(value: int) -> int:
    return value + 1


def add_one_later(value: int) -> Any:  # noqa: ANN401
    return add_one(value)


@pytest.mark.parametrize("function", [add_one, add_one_later, Asynchronous(), lambda v: v + 1])
def test_functions_of_every_kind(function: Any) -> None:  # noqa: ANN401
    assert asyncio.run(call_function(function, 1)) == 2


def test_a_function_runs_in_another_thread() -> None:
    assert asyncio.run(call_function(threading.current_thread)) != threading.current_thread()


@pytest.mark.parametrize(
    "error", [StopIteration(), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()]
)
def test_what_a_task_cannot_hold_is_a_runtime_error(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(RuntimeError, match=f"the call raised {type(error).__name__}"):
        asyncio.run(call_function(fail))


def test_ctrl_c_and_other_exceptions_stay_what_they_are() -> None:
    async def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(call_function(interrupted))
    error = ValueError("bug")

    async def fail() -> None:
        raise error

    with pytest.raises(ValueError, match="bug") as caught:
        asyncio.run(call_function(fail))
    assert caught.value is error
