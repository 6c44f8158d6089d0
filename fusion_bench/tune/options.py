"""Options of tuning: keys of ``tune:`` with other values, who evaluates."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from fusion_bench.config.models import MOST_WORKERS
from fusion_bench.config.options import CheckOptions, Name, Option, PictureOptions

Url: TypeAlias = Annotated[str, Option(metavar="URL")]
#: Options that stand for a key of an experiment's ``tune:``.
SETTINGS = ("system", "trials", "timeout", "sampler", "seed", "folds", "engine")


class TuneOptions(CheckOptions, PictureOptions):
    """Options of ``tune``: the system, the search and who evaluates it.

    Attributes:
        csv: Also write the records behind the page as CSV.
        system: Tune this system.
        trials: How many parameter sets to try.
        timeout: Stop starting trials after this many seconds.
        sampler: auto, tpe, cmaes, gp, qmc, random, grid or brute_force.
        seed: Seed of the search and the tests.
        folds: Folds of the nested cross-validation; 0 = none.
        engine: Search only what this search engine can express, such as elasticsearch.
        workers: Processes that evaluate trials; results do not depend on it.
        storage: Database through which several machines search together, such as
            postgresql://user@host/name. Run the same command on each.
        cluster: Evaluate on a Dask cluster whose workers see the same files, such as
            tcp://host:8786; local:4 starts four processes.
        export: Copy the finished search into an Optuna storage, such as sqlite:///study.db, for
            optuna-dashboard.
    """

    csv: Annotated[Literal["tables"], Option(metavar="")] | None = None
    system: Name | None = None
    trials: int | None = None
    timeout: float | None = None
    sampler: Name | None = None
    seed: int | None = None
    folds: int | None = None
    engine: Name | None = None
    workers: Annotated[int, Option(min=1, max=MOST_WORKERS)] = 1
    storage: Url | None = None
    cluster: Annotated[str, Option(metavar="ADDRESS")] | None = None
    export: Annotated[Url, Option("--export-study")] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Keys of ``tune:`` with other values than the experiment's."""
        given = {name: getattr(self, name) for name in SETTINGS}
        return {name: value for name, value in given.items() if value is not None}
