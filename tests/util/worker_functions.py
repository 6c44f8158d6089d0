"""Functions that tests call in worker processes."""

import os
import sys
import time


class UnreadableError(Exception):
    """Can be pickled, and not read back."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first + second)


def process_id(*_: object) -> int:
    return os.getpid()


def exit_at_once(*_: object) -> None:
    os._exit(1)


def raise_unreadable() -> None:
    raise UnreadableError(1, 2)


def raise_error(error: Exception) -> None:
    raise error


def print_and_read() -> str:
    sys.stdout.write("from a worker\n")
    sys.stdout.flush()
    return sys.stdin.read()


def sleep_long() -> None:
    time.sleep(600)
