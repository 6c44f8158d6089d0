"""Evaluation by workers: threads here, processes, and the workers of a real Dask cluster."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster, get_worker

from fusion_bench.cli import main
from fusion_bench.config.parameters import Params
from fusion_bench.data.query_splits import split_queries
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.tune import distribution
from fusion_bench.tune.distribution import (
    DaskExecutor,
    DistributedObjective,
    WorkerPool,
    connect_cluster,
    distribute_objective,
    join_folders,
    running_workers,
)
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.objective import ObjectivePaths, TuningObjective
from fusion_bench.tune.search import run_search
from fusion_bench.tune.trial_selection import cross_validate
from tests.tune import made

TRIALS: list[Params] = [{"fusion.weights.good": w, "blend.beta": 0.3} for w in (0.1, 0.5, 2.0)]
SHORT = ("--trials", "6", "--no-plots", "--json")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.make(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def paths(root: Path) -> ObjectivePaths:
    experiment, source = read_experiment(root / "experiments" / "e.yaml")
    assert experiment.tune is not None
    dataset = root / "datasets" / "made" / "dataset.yaml"
    return ObjectivePaths(source.path.resolve(), dataset, experiment.tune)


@pytest.fixture(scope="module")
def objective(paths: ObjectivePaths) -> TuningObjective:
    return paths.open()[0]


@pytest.fixture(scope="module")
def threads() -> Iterator[WorkerPool]:
    pool = WorkerPool([partial(ThreadPoolExecutor, 1)] * 2)
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[WorkerPool]:
    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, **options) as local,  # type: ignore[no-untyped-call]
        connect_cluster(local.scheduler_address) as pool,
    ):
        yield pool


def tune_command(root: Path, out: Path, *options: str) -> list[str]:
    folders = ["--out", str(out), "--datasets", str(root / "datasets")]
    return ["tune", str(root / "experiments" / "e.yaml"), *folders, *SHORT, *options]


@pytest.fixture(scope="module")
def tuned(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("single")
    assert main(tune_command(root, out)) == 0
    return read_report(out)


def read_report(out: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((out / "tuning.json").read_text())
    # A second run on the same queries is another entry of the ledger of looks.
    return {key: value for key, value in report.items() if key not in {"provenance", "look"}}


def kill_worker(pids: list[int]) -> None:
    os.kill(pids.pop(), signal.SIGKILL)


def test_values_are_equal_to_the_last_bit(
    objective: TuningObjective, paths: ObjectivePaths, threads: WorkerPool
) -> None:
    whole = distribute_objective(objective, paths, threads)
    keep = np.arange(len(objective.runs.queries)) % 3 > 0
    for ours, theirs in (
        (whole, objective),
        (whole.subset_queries(keep), objective.subset_queries(keep)),
    ):
        assert np.array_equal(ours.evaluate_params(TRIALS), theirs.evaluate_params(TRIALS))
        assert ours.fingerprint == theirs.fingerprint
    only_last = np.arange(len(keep)) == len(keep) - 1
    assert whole.subset_queries(only_last).evaluate_params(TRIALS).shape == (3, 1)
    assert whole.subset_queries(keep | True) is whole


def test_a_trial_that_one_worker_cannot_compute_has_no_value(
    objective: TuningObjective, paths: ObjectivePaths, threads: WorkerPool
) -> None:
    whole = distribute_objective(objective, paths, threads)
    impossible = {path: 0.0 for path in objective.default_params if "weights" in path}
    trials: list[Params] = [{**objective.default_params, **impossible}, objective.default_params]
    values = whole.evaluate_params(trials)
    assert np.isnan(values[0]).all()
    assert np.array_equal(values[1:], objective.evaluate_params(trials[1:]))
    assert whole.failure_reason(trials[0]) == objective.failure_reason(trials[0]) != None  # noqa: E711
    assert whole.failure_reason(trials[1]) is None


def test_workers_must_read_the_same_files(
    objective: TuningObjective, paths: ObjectivePaths, threads: WorkerPool, tmp_path: Path
) -> None:
    other = made.make(tmp_path) / "datasets" / "made"
    lines = (other / "bad.trec").read_text().splitlines(keepends=True)
    (other / "bad.trec").write_text("".join(["q0 Q0 d0 1 0.123456 x\n", *lines[1:]]))
    changed = replace(paths, dataset=other / "dataset.yaml")
    with pytest.raises(FusionBenchError, match="reads other data"):
        distribute_objective(objective, changed, threads).evaluate_params(TRIALS)
    gone = replace(paths, dataset=tmp_path / "nowhere" / "dataset.yaml")
    with pytest.raises(FusionBenchError, match="nowhere"):
        distribute_objective(objective, gone, threads).evaluate_params(TRIALS)


#: The files of a dataset with a line a query or document; a search before left a ledger of looks.
LINES = {"qrels.txt", "queries.jsonl", "groups.jsonl", "good.trec", "bad.trec", "sharp.trec"}


def cut_into_folders(paths: ObjectivePaths, folder: Path) -> list[ObjectivePaths]:
    parts = []
    for number in range(3):
        part = folder / str(number)
        part.mkdir()
        for file in paths.dataset.parent.iterdir():
            if file.suffix == ".yaml":
                (part / file.name).write_text(file.read_text())
            elif file.name in LINES:
                lines = file.read_text().splitlines(keepends=True)
                (part / file.name).write_text(
                    "".join(line for line in lines if query_number(line) // 20 == number)
                )
        parts.append(replace(paths, dataset=part / "dataset.yaml"))
    return parts


def query_number(line: str) -> int:
    name = json.loads(line)["id"] if line.startswith("{") else line.split()[0]
    return sorted(f"q{number}" for number in range(60)).index(name)


def test_folders_of_queries_are_searched_and_judged_as_one_dataset(
    paths: ObjectivePaths, threads: WorkerPool, tmp_path: Path
) -> None:
    whole, known = paths.open()
    joined, joined_known = join_folders(cut_into_folders(paths, tmp_path), threads)
    assert joined.runs.queries == whole.runs.queries
    assert len(joined.runs.documents) == 0
    assert joined_known == dict(known)
    assert np.array_equal(joined.evaluate_params(TRIALS), whole.evaluate_params(TRIALS))
    tuning = paths.tuning.model_copy(update={"trials": 8})
    settings = tuning.search_settings()

    def tune(objective: TuningObjective, log: Path) -> tuple[Any, ...]:
        split = split_queries(objective.runs, known, split_seed=tuning.split_seed, held_out=0.5)
        result = run_search(objective, split.tune, settings, log=log)
        evaluation = HeldOutEvaluation(objective, split, tuning)
        nested = cross_validate(
            objective,
            split,
            tuning,
            lambda keep, _: run_search(objective, keep, tuning.search_settings()),
        )
        values = objective.evaluate_params([objective.default_params, result.best_trial.params])
        gain = evaluation.measure_gain(evaluation.pair_values(values[1], values[0]))
        verdict = evaluation.decide_verdict(gain)
        return result.trials, nested.trials, repr(nested.values.tolist()), gain, verdict

    assert tune(joined, tmp_path / "a.jsonl") == tune(whole, tmp_path / "b.jsonl")
    assert joined.fingerprint != whole.fingerprint  # it rests on the folders' contents


def test_folders_that_do_not_belong_together_are_refused(
    paths: ObjectivePaths, threads: WorkerPool
) -> None:
    with pytest.raises(ConfigError, match="least one folder"):
        join_folders([], threads)
    with pytest.raises(ConfigError, match="in two folders"):
        join_folders([paths, paths], threads)


def test_a_killed_process_is_replaced(
    objective: TuningObjective, paths: ObjectivePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distribution, "ATTEMPTS", 2)  # each starts a process
    with connect_cluster("local:2") as pool:
        whole = distribute_objective(objective, paths, pool)
        expected = whole.evaluate_params(TRIALS)
        kill_worker(pool.run(os_getpid, [(1, None)]))
        assert np.array_equal(whole.evaluate_params(TRIALS), expected)
        with pytest.raises(FusionBenchError, match="killed 2 times"):
            pool.run(os._exit, [(0, 1)])
        assert np.array_equal(whole.evaluate_params(TRIALS), expected)
    assert np.array_equal(objective.evaluate_params(TRIALS), expected)


def os_getpid(_: object) -> int:
    return os.getpid()


def test_a_killed_parent_ends_its_workers_and_loses_no_trial(
    root: Path, tmp_path: Path, tuned: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    script = (
        "import sys, os, signal\n"
        "from fusion_bench.tune.search import TrialLog\n"
        "from fusion_bench.tune.distribution import WorkerPool\n"
        "from tests.tune.test_distribution import os_getpid\n"
        "add, pools, start = TrialLog.evaluate_params, [], WorkerPool.__init__\n"
        "WorkerPool.__init__ = lambda self, *args: (start(self, *args), pools.append(self))[0]\n"
        "def die(*given):\n"
        "    add(*given)\n"
        "    print(*pools[0].run(os_getpid, [(0, None), (1, None)]), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "TrialLog.evaluate_params = die\n"
        "from fusion_bench.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", script, *tune_command(root, out, "--workers", "2")]
    project = Path(__file__).parents[2]
    killed = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project)},
        timeout=240,
    )
    assert killed.returncode == -signal.SIGKILL
    workers = [int(pid) for pid in killed.stdout.split()]
    assert len(workers) == 2  # and capture_output has waited until they closed their output
    log = (out / "trials.jsonl").read_text().splitlines()
    assert len(log) == 2  # the search and its first trial
    assert main(tune_command(root, out, "--workers", "2")) == 0
    assert (out / "trials.jsonl").read_text().splitlines()[:2] == log
    assert read_report(out) == tuned


def test_a_whole_run_on_a_cluster_with_a_killed_worker_is_equal_to_the_last_bit(
    cluster: WorkerPool,
    root: Path,
    tmp_path: Path,
    tuned: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    victims = cluster.run(os_getpid, [(0, None)])
    evaluate = DistributedObjective.evaluate_params

    def kill(self: DistributedObjective, trials: list[Params]) -> Any:  # noqa: ANN401
        values = evaluate(self, trials)
        if victims and len(trials) > 1:
            kill_worker(victims)
        return values

    monkeypatch.setattr(DistributedObjective, "evaluate_params", kill)
    monkeypatch.setattr(distribution, "connect_cluster", lambda _: nullcontext(cluster))
    assert main(tune_command(root, tmp_path, "--cluster", "tcp://here")) == 0
    assert not victims
    assert read_report(tmp_path) == tuned
    assert len(tuned["folds"]) == 2
    assert set(tuned["per_type"]["params"]) == {"a", "b"}


def test_calls_are_sent_again_after_every_worker_was_killed(cluster: WorkerPool) -> None:
    for pid in set(cluster.run(os_getpid, [(0, None), (1, None)])):
        os.kill(pid, signal.SIGKILL)
    assert cluster.run(abs, [(0, -1), (1, -2), (1, -3)]) == [1, 2, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cluster", "nonsense"], "cluster (not shown): missing port"),
        (["--cluster", "local:0"], "cluster local:0: state the number of processes"),
        (["--cluster", "local:2", "--workers", "2"], "--cluster: evaluates every trial already"),
        (["--cluster", "local:2", "--storage", "sqlite://"], "leave out --storage"),
    ],
)
def test_a_wrong_cluster_is_one_line_and_code_2(
    root: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    assert main(tune_command(root, tmp_path, *options)) == 2
    error = capsys.readouterr().out
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_scheduler_that_is_missing_or_has_no_worker_is_an_error() -> None:
    with (
        pytest.raises(ConfigError, match="Timed out"),
        connect_cluster("tcp://127.0.0.1:1", timeout=0.2),
    ):
        pass
    empty = LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=0, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50
    )
    with (
        empty,
        pytest.raises(ConfigError, match=r"0/1 workers|TimeoutError"),
        connect_cluster(empty.scheduler_address, timeout=0.2),
    ):
        pass


def test_without_the_extra_it_is_named(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(tune_command(root, tmp_path, "--cluster", "tcp://here:1")) == 2
    assert "rank-fusion-bench[cluster]" in capsys.readouterr().out


@pytest.fixture
def client() -> Iterator[Any]:
    cluster = LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2,
        processes=False,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    )
    with cluster, Client(cluster) as client:  # type: ignore[no-untyped-call]
        yield client


def scale(client: Any, count: int) -> list[str]:  # noqa: ANN401
    """The addresses of a cluster's workers once there are so many."""
    client.cluster.scale(count)
    while len(workers := running_workers(client)) != count:
        pass
    return workers


def worker_address() -> str:
    return str(get_worker().address)


def test_each_executor_keeps_a_worker_while_there_are_enough(client: Any) -> None:  # noqa: ANN401
    workers: list[str | None] = [*running_workers(client)]
    addresses = [*workers]
    first, second = (DaskExecutor(client, addresses, number) for number in range(2))

    def ask_both() -> list[str]:
        futures = [executor.submit(worker_address) for executor in (first, second)]
        return [future.result() for future in futures]

    assert ask_both() == workers
    [remaining] = scale(client, 1)
    left, right = (first, second) if remaining == workers[1] else (second, first)
    with pytest.raises(BrokenExecutor):
        left.submit(worker_address).result()
    assert right.submit(worker_address).result() == remaining
    left.shutdown()
    assert ask_both() == [remaining, remaining]
    assert sorted(scale(client, 2)) == sorted(ask_both())


def test_a_cluster_that_stays_without_workers_is_an_error(client: Any) -> None:  # noqa: ANN401
    scale(client, 0)
    executor = DaskExecutor(client, [None], 0, return_seconds=0.1)
    with pytest.raises(FusionBenchError, match=r"worker for 0\.1 seconds"):
        executor.submit(worker_address)


def test_an_error_of_a_call_is_raised(client: Any) -> None:  # noqa: ANN401
    executor = DaskExecutor(client, [None], 0)
    with pytest.raises(ZeroDivisionError):
        executor.submit(divmod, 1, 0).result()
    with pytest.raises(FusionBenchError, match=r"cluster: .*file"):
        executor.submit(raise_os_error).result()


def raise_os_error() -> None:
    raise OSError("no such\nfile")
