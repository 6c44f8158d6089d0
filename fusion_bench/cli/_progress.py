"""A progress bar for long work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from fusion_bench.evaluation.run_experiment import Progress

#: Seconds before the bar appears.
SECONDS_BEFORE_BAR = 2.0


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A callback that draws on standard error once the work has taken two seconds.

    Nothing is drawn where standard error is not a terminal, and nothing stays behind.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,  # else it would leave an empty line behind
    )
    task = bar.add_task("", total=None)
    started = time.monotonic()

    def update_bar(stage: str, done: int, total: int) -> None:
        bar.update(task, description=stage, completed=done, total=total)
        if time.monotonic() - started > SECONDS_BEFORE_BAR:
            bar.start()

    try:
        yield update_bar
    finally:
        bar.stop()
