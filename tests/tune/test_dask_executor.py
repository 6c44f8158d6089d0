"""Executors on the workers of a cluster that shrinks and grows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from typing import Any

import pytest
from distributed import Client, LocalCluster, get_worker

from fusion_bench.errors import FusionBenchError
from fusion_bench.tune.distribution import DaskExecutor, running_workers


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
