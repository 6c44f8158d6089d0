"""Progress of long work: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fusion_bench.cli.progress.lines import update_lines
from fusion_bench.evaluation.run_experiment import Progress

#: Seconds before the bar appears.
SECONDS_BEFORE_BAR = 2.0


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A callback that draws on standard error once the work has taken two seconds.

    Nothing stays behind. Where standard error is not a terminal, the command prints lines instead.
    """
    if not sys.stderr.isatty():
        yield update_lines
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("", total=None)
    started = time.monotonic()

    def update_bar(stage: str, done: int, total: int) -> None:
        description = f"{stage}, {done:,} of {total:,}" if total > 1 else stage
        bar.update(task, description=description, completed=done, total=total)
        if time.monotonic() - started > SECONDS_BEFORE_BAR:
            bar.start()

    try:
        yield update_bar
    finally:
        bar.stop()
