"""Options of a tuning run: its folder, its overrides, and where trials are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.run_experiment import Progress
from fusion_bench.tune.distributed import connect_cluster, distribute_objective, start_processes
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.space.open_objective import ObjectivePaths


@dataclass(frozen=True)
class TuneOptions:
    """The options of ``tune`` beside the experiment's own.

    Attributes:
        out: Folder for the reports and the logs.
        folders: Folders with datasets.
        progress: Makes a progress bar for each dataset.
        overrides: Keys of ``tune:`` with other values than the experiment's; None = the same.
        workers: Processes on this machine that evaluate trials.
        cluster: Address of a Dask cluster that evaluates them; None = no cluster.
        storage: Database through which several machines search together; None = this one alone.
        export: Database that the finished search is copied to; None = not copied.
        plots: Whether plots are drawn.
        plot_format: ``png`` or ``svg``.
        tables: Formats of tables, ``latex`` and ``csv``.
        html: Whether the page for a browser is written.

    Raises:
        ConfigError: A cluster together with a storage or several workers.
    """

    out: Path
    folders: Sequence[Path]
    progress: Callable[[], AbstractContextManager[Progress]]
    overrides: Mapping[str, object] = field(default_factory=dict)
    workers: int = 1
    cluster: str | None = None
    storage: str | None = None
    export: str | None = None
    plots: bool = True
    plot_format: str = "png"
    tables: Sequence[str] = ()
    html: bool = True

    def __post_init__(self) -> None:
        other = "--storage" if self.storage else "--workers" if self.workers > 1 else None
        if self.cluster is not None and other is not None:
            raise ConfigError(f"--cluster: evaluates every trial already: leave out {other}")

    @contextmanager
    def distribute(
        self, objective: TuningObjective, paths: ObjectivePaths
    ) -> Iterator[TuningObjective]:
        """The objective, evaluated by the workers or the cluster."""
        if self.workers == 1 and self.cluster is None:
            yield objective
            return
        processes = start_processes(self.workers)
        with processes if self.cluster is None else connect_cluster(self.cluster) as pool:
            yield distribute_objective(objective, paths, pool)
