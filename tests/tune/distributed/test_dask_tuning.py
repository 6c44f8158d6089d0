"""Whole tuning runs on a real cluster of two worker processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

from fusion_bench.cli import main
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.evaluation.run_experiment import report_provenance
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.report.tuning import TuningReport
from fusion_bench.tune.distributed import dask_tuning as spread
from fusion_bench.tune.distributed.cluster import Shards
from fusion_bench.tune.distributed.dask_tuning import Part, Spread, connected
from fusion_bench.tune.run import Progress, TuningRun
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.space.open_problem import create_objective, load_tuning_dataset
from tests.tune import made


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    local = LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    )
    with local, Client(local) as client:  # type: ignore[no-untyped-call]
        yield client


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.make(tmp_path_factory.mktemp("made"))


SHORT = ("--trials", "6")


def tune(root: Path, out: str, *options: str) -> int:
    folders = ["--out", str(root / out), "--datasets", str(root / "datasets")]
    return main(
        ["tune", str(root / "experiments" / "e.yaml"), *folders, "--no-plots", "--json", *options]
    )


def numbers(report: Any) -> list[float]:  # noqa: ANN401 - as JSON has it
    """Every number of a report, in its order; what is no number must be the same anyway."""
    if isinstance(report, dict):
        return [x for key in report if key != "provenance" for x in numbers(report[key])]
    if isinstance(report, list):
        return [x for one in report for x in numbers(one)]
    return [float(report)] if isinstance(report, int | float) else []


def parts_of(root: Path) -> tuple[TuningObjective, Part, Any]:
    experiment, source = read_experiment(root / "experiments" / "e.yaml")
    tuning = experiment.tune
    assert tuning is not None
    path = root / "datasets" / "made" / "dataset.yaml"
    dataset = load_tuning_dataset(experiment, source, tuning, path)
    part = Part(source.path.resolve(), path.resolve(), tuning, True, 0, 1)
    return create_objective(experiment, source, tuning, dataset), part, dataset


def test_folds_types_and_held_out_queries_come_out_as_from_one_process(
    client: Client, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune(root, "one", *SHORT) == 0
    plain = json.loads(capsys.readouterr().out)
    address = client.scheduler_info()["address"]
    assert tune(root, "many", *SHORT, "--cluster", address) == 0
    found = json.loads(capsys.readouterr().out)
    assert [t["params"] for t in found["trials"]] == [t["params"] for t in plain["trials"]]
    assert len(found["folds"]) == 2
    assert set(found["typed"]["params"]) == {"a", "b"}
    assert len(numbers(found)) > 300
    assert numbers(found) == pytest.approx(numbers(plain), abs=1e-12)


def walked(root: Path, out: str, client: Client | None, progress: Progress) -> TuningReport:
    problem, part, dataset = parts_of(root)
    tuning = part.tuning.model_copy(update={"by_query_type": False, "crag": None})
    elsewhere = None if client is None else Spread(client, problem, part)
    walk = TuningRun(problem, dataset, tuning, root / out, spread=elsewhere, progress=progress)
    experiment, source = read_experiment(part.experiment)
    return walk("e", report_provenance(experiment, source))


def test_a_worker_that_is_killed_changes_nothing(client: Client, root: Path) -> None:
    victims = iter([next(iter(client.run(os.getpid).values()))])

    def kill(stage: str, done: int, _: int) -> None:
        if "best" in stage and done > 3:
            for pid in victims:
                os.kill(pid, signal.SIGKILL)

    found = walked(root, "killed", client, kill)
    assert next(victims, None) is None
    plain = walked(root, "unkilled", None, lambda *_: None)
    assert [t.params for t in found.trials] == [t.params for t in plain.trials]
    values = [t.value for t in plain.trials]
    assert [t.value for t in found.trials] == pytest.approx(values, abs=1e-12)
    assert found.held_out == plain.held_out
    assert [fold.params for fold in found.folds] == [fold.params for fold in plain.folds]


def test_workers_must_read_the_same_files(client: Client, root: Path, tmp_path: Path) -> None:
    problem, part, _ = parts_of(root)
    other = made.make(tmp_path)
    path = other / "datasets" / "made" / "bad.trec"
    first, *others = path.read_text().splitlines(keepends=True)
    path.write_text("".join(["q0 Q0 d0 1 0.123456 x\n", *others]))
    assert not first.startswith("q0 Q0 d0 1 0.123456")
    changed = Part(part.experiment, other / part.dataset.relative_to(root.resolve()), *rest(part))
    with pytest.raises(ConfigError, match="a worker reads other data in"):
        Spread(client, problem, changed)
    gone = Part(part.experiment, tmp_path / "nowhere" / "dataset.yaml", *rest(part))
    with pytest.raises(FusionBenchError, match="nowhere"):
        Spread(client, problem, gone)


def rest(part: Part) -> tuple[TuneSettings, bool, int, int]:
    return part.tuning, part.v2_enabled, part.number, part.parts


def test_what_runs_on_a_worker(root: Path) -> None:
    problem, part, _ = parts_of(root)
    own = Part(part.experiment, part.dataset, part.tuning, True, 1, 3)()
    assert own.runs.queries == problem.runs.queries[20:40]
    keep = np.arange(20) % 2 == 0
    trials = [own.default_params, {**own.default_params, "blend.beta": 0.1}]
    found = spread._sums(own, spread._Asked(own.system, own.parameters, keep, trials))
    assert found.queries == 10
    assert found.totals == pytest.approx(own.evaluate_params(trials)[:, keep].sum(axis=1))
    nothing = spread._sums(own, spread._Asked(own.system, own.parameters, keep & False, trials))
    assert (nothing.queries, nothing.totals.tolist()) == (0, [0.0, 0.0])
    impossible = dict.fromkeys(own.default_params, 0.0)
    failed = spread._sums(own, spread._Asked(own.system, own.parameters, keep, [impossible]))
    assert np.isnan(failed.totals).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cluster", "tcp://127.0.0.1:1"], "cluster tcp://127.0.0.1:1: Timed out"),
        (["--cluster", "nonsense"], "cluster nonsense: missing port"),
        (["--cluster", "local:0"], "cluster local:0: say how many processes"),
        (["--cluster", "local:2", "--workers", "2"], "--cluster: evaluates every trial already"),
        (["--cluster", "local:2", "--storage", "sqlite://"], "leave out --storage"),
    ],
)
def test_a_cluster_that_is_not_there_is_one_line_and_code_2(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    said: str,
) -> None:
    monkeypatch.setattr(spread, "PATIENCE", 0.2)
    assert tune(root, "none", *options) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_without_the_extra_it_is_named(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    assert tune(root, "none", "--cluster", "local:2") == 2
    assert "rank-fusion-bench[cluster]" in capsys.readouterr().err


def test_a_scheduler_without_workers_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spread, "PATIENCE", 0.2)
    empty = LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=0, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50
    )
    with (
        empty,
        pytest.raises(ConfigError, match="it has no worker"),
        connected(empty.scheduler_address),
    ):
        pass


def test_processes_of_our_own_are_started_and_ended() -> None:
    with connected("local:1") as client:
        assert len(client.scheduler_info()["workers"]) == 1
        (pid,) = client.run(os.getpid).values()
        assert pid != os.getpid()
    assert client.status == "closed"


def deadly() -> TuningObjective:
    os._exit(1)


def test_a_part_that_ends_its_workers_is_an_error(client: Client) -> None:
    def once(dask_scheduler: Any) -> None:  # noqa: ANN401 - Dask's
        dask_scheduler.allowed_failures = 0

    client.run_on_scheduler(once)  # type: ignore[no-untyped-call]
    with pytest.raises(FusionBenchError, match="ended several workers, often for want of memory"):
        Shards(client, [deadly]).values([])
