"""Chroma's connector against a real server: ``chroma run`` of the package chromadb."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fusion_bench.engines.connectors import HttpConnector, connectors
from fusion_bench.errors import ProviderError
from tests.engines.connectors.cases import QUERY
from tests.engines.connectors.loopback import DOCUMENTS, rank_by_cosine
from tests.engines.connectors.test_contract import read
from tests.engines.local.cases import ask

PROGRAM = Path(sys.executable).with_name("chroma")
COLLECTIONS = "/api/v2/tenants/default_tenant/databases/default_database/collections"
COSINES = rank_by_cosine(QUERY.vectors["dense"])
#: Distance of two vectors of length 1, by its name.
DISTANCES = {"cosine": lambda c: 1 - c, "ip": lambda c: 1 - c, "l2": lambda c: 2 - 2 * c}
SECONDS_TO_START = 120


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not PROGRAM.exists():
        pytest.skip("chromadb is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("chroma")
    command = [
        str(PROGRAM),
        "run",
        "--path",
        str(folder),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    server = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
    )
    try:
        base = f"http://127.0.0.1:{port}"
        wait_until_ready(base, server)
        for space in DISTANCES:
            add_collection(base, space)
        yield base
    finally:
        server.terminate()
        server.wait()


def wait_until_ready(base: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end and server.poll() is None:
        try:
            if httpx.get(f"{base}/api/v2/heartbeat", trust_env=False).is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise AssertionError(f"chroma run did not start (status {server.poll()})")


def add_collection(base: str, space: str) -> None:
    place = f"{base}{COLLECTIONS}"
    columns = {
        "ids": [*DOCUMENTS],
        "documents": [text for text, _ in DOCUMENTS.values()],
        "embeddings": [vector for _, vector in DOCUMENTS.values()],
    }
    with httpx.Client(trust_env=False, timeout=SECONDS_TO_START) as client:
        configuration = {"hnsw": {"space": space}}
        made = client.post(place, json={"name": f"docs-{space}", "configuration": configuration})
        client.post(f"{place}/{made.json()['id']}/add", json=columns).raise_for_status()


def connect(url: str, space: str, **settings: Any) -> HttpConnector:  # noqa: ANN401 - of the connector
    connector = connectors.build(
        {
            "method": "chroma",
            "url": url,
            "collection": f"docs-{space}",
            "legs": {"dense": {}},
            **settings,
        }
    )
    assert isinstance(connector, HttpConnector)
    return connector


@pytest.mark.parametrize("space", DISTANCES)
def test_the_list_and_its_distances_are_those_of_the_server(url: str, space: str) -> None:
    hits = read(connect(url, space), "dense", 5, texts=True)
    assert [hit.document for hit in hits] == [name for name, _ in COSINES[:5]]
    expected = [-DISTANCES[space](cosine) for _, cosine in COSINES[:5]]
    assert [hit.score for hit in hits] == pytest.approx(expected, abs=1e-5)
    assert [hit.text for hit in hits] == [DOCUMENTS[hit.document][0] for hit in hits]


def test_the_fingerprint_names_version_and_count(url: str) -> None:
    first = ask(connect(url, "cosine"), lambda session: session.read_fingerprint())
    other = ask(connect(url, "l2"), lambda session: session.read_fingerprint())
    assert isinstance(first["version"], str)
    assert first["documents"] == len(DOCUMENTS)
    assert first["configuration"] != other["configuration"]


def test_what_a_server_of_ones_own_refuses(url: str) -> None:
    with pytest.raises(ProviderError, match=r"501.*not implemented"):
        read(connect(url, "cosine", search_api=True), "dense", 5)
    with pytest.raises(ProviderError, match="404") as caught:
        read(connect(url, "none"), "dense", 5)
    assert caught.value.kind == "refused"
