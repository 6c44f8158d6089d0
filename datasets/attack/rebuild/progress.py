"""How far the build is: a bar on a terminal, a plain line a step elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def step(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show one step of the build.

    Args:
        what: Its name.
        total: How often the function that is handed out will be called.
    """
    console = Console()
    if not console.is_terminal:
        started = time.monotonic()
        yield lambda: None
        print(f"{what}: {time.monotonic() - started:.1f} s", flush=True)
        return
    columns = (TextColumn(f"{what:<28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
        bar.update(task, completed=total)
