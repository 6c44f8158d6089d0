"""The server over both transports: many calls, cancelled calls, tokens, how it starts and ends."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.serving.mcp.project import Project
from fusion_bench.serving.mcp.server import ToolServer
from fusion_bench.util.formatting import checked_by
from tests.attacks.project import EXPERIMENT
from tests.child_processes import running_child
from tests.serving.mcp.conftest import CONNECT
from tests.serving.mcp.served import (
    COMMAND,
    TOKEN,
    Notes,
    Served,
    connect_http,
    connect_stdio,
    read_text,
    running_http,
)

#: Systems of an experiment that takes about ten seconds.
MANY = 600
LONG = "experiments/long.yaml"


@pytest.fixture(scope="session")
def long(folder: Path) -> str:
    text = (folder / EXPERIMENT).read_text(encoding="utf-8")
    systems = (
        f"  s{n}: {{runs: [a, b], fusion: {{method: rrf, k: {n + 1}}}}}\n" for n in range(MANY)
    )
    (folder / LONG).write_text(text.replace("gate:", f"{''.join(systems)}gate:"), encoding="utf-8")
    return LONG


def cancel_call(served: Served, experiment: str, stage: str) -> tuple[str, float]:
    """Cancel an evaluation once it has reached a stage, then wait for another call.

    Returns:
        What was told first, and the seconds that the other call took.
    """

    async def cancel() -> tuple[list[tuple[float, str]], float]:
        notes = Notes(awaited=stage)

        async def evaluate() -> None:
            await served.client.call_tool(
                "evaluate", {"experiment": experiment}, progress_callback=notes
            )
            raise AssertionError("it was not cancelled")

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(evaluate)
                await notes.reached.wait()
                group.cancel_scope.cancel()
            start = time.monotonic()
            # It waits until the cancelled one has ended.
            await served.client.call_tool("explain", {"query": "q1"})
        return notes.notes, time.monotonic() - start

    notes, waited = served.portal.call(cancel)
    return notes[0][1], waited


@pytest.mark.parametrize("stage", ["mine: s", "comparing"])
def test_a_cancelled_call_ends_before_it_is_done(served: Served, long: str, stage: str) -> None:
    first, waited = cancel_call(served, long, stage)
    assert first.startswith("reading mine")
    assert waited < 4, "the whole comparison takes about ten seconds"


@pytest.mark.parametrize("transport", CONNECT)
def test_a_client_of_an_earlier_protocol_is_served_too(
    transport: str, folder: Path, long: str
) -> None:
    with CONNECT[transport](folder, "--experiment", EXPERIMENT, mode="legacy") as served:
        assert len(served.portal.call(served.client.list_tools).tools) == 10
        assert served.find("lint")["findings"] is not None
        assert cancel_call(served, long, "mine: s")[1] < 4


def test_reading_and_testing_ask_whether_to_go_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    checks: list[str] = []
    with checked_by(lambda: checks.append("reading")):
        dataset = fb.load_dataset("mine")
    with checked_by(lambda: checks.append("testing")):
        fb.compare(dataset, measures="RR@10")
    assert checks.count("reading") >= 3, "the judgments and each list"
    assert "testing" in checks


def test_progress_rises_and_names_the_stage(served: Served, long: str) -> None:
    async def evaluate() -> list[tuple[float, str]]:
        notes = Notes()
        with anyio.move_on_after(1.5):
            await served.client.call_tool("evaluate", {"experiment": long}, progress_callback=notes)
        return notes.notes

    notes = served.portal.call(evaluate)
    numbers = [number for number, _ in notes]
    assert len(numbers) > 1
    assert numbers == sorted(set(numbers))
    assert notes[0][1].startswith("reading mine")


def test_twenty_calls_at_once_answer_as_one_after_the_other(served: Served) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("evaluate", {}),
        ("explain", {"query": "q1"}),
        ("lint", {}),
        ("list_datasets", {}),
        ("check_dataset", {"dataset": "none"}),
    ] * 4

    async def ask() -> list[Any]:
        answers: list[Any] = [None] * len(calls)

        async def ask_one(n: int) -> None:
            answers[n] = await served.client.call_tool(*calls[n])

        async with anyio.create_task_group() as group:
            for n in range(len(calls)):
                group.start_soon(ask_one, n)
        return answers

    alone = [served.call(tool, arguments) for tool, arguments in calls[:5]]
    for n, answer in enumerate(served.portal.call(ask)):
        assert answer.is_error is alone[n % 5].is_error
        assert drop_time(answer.structured_content) == drop_time(alone[n % 5].structured_content)


def drop_time(record: dict[str, Any] | None) -> dict[str, Any] | None:
    return record and {key: value for key, value in record.items() if key != "provenance"}


def evaluate_in_process() -> tuple[bool, str]:
    """Whether ``evaluate`` fails, and the text of its answer, in this process."""

    async def ask() -> CallToolResult:
        project = Project(experiment=Path(EXPERIMENT))
        async with Client(ToolServer(project).protocol) as client:
            return await client.call_tool("evaluate", {})

    result = anyio.run(ask)
    return bool(result.is_error), read_text(result)


def test_an_answer_that_no_client_takes_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert not evaluate_in_process()[0]
    monkeypatch.setattr("fusion_bench.serving.mcp.server.MOST_CHARACTERS", 3_000)
    is_error, text = evaluate_in_process()
    assert is_error
    assert "3,000" in text
    assert "per_query" in text


def test_a_fault_of_the_server_shows_nothing_but_its_kind(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("/a/path/of/the/server")

    monkeypatch.chdir(folder)
    monkeypatch.setattr("fusion_bench.serving.mcp.tools.lint_datasets", fail)
    is_error, text = evaluate_in_process()
    assert is_error
    assert "ZeroDivisionError" in text
    assert "/a/path" not in text


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_server_at_once(number: int, code: int, folder: Path) -> None:
    with running_child(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(30) == code


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[tuple[str, int]]:
    with running_http(folder) as (_, started):
        assert started["token"] is None
        parts = urlsplit(started["address"])
        assert parts.hostname == "127.0.0.1"
        assert parts.port
        yield parts.hostname, parts.port


GIVEN = {"authorization": f"Bearer {TOKEN}"}
#: Headers → the status of a first request.
HEADERS = [
    ({}, 401),
    ({"authorization": "Bearer wrong"}, 401),
    ({"authorization": TOKEN}, 401),
    ({"authorization": f"Basic {TOKEN}"}, 401),
    ({"authorization": f"Bearer {TOKEN}x"}, 401),
    (GIVEN, 200),
    ({**GIVEN, "origin": "http://evil.example"}, 403),
    ({**GIVEN, "host": "evil.example"}, 403),
    ({**GIVEN, "origin": "null"}, 403),
]


@pytest.mark.parametrize(("headers", "status"), HEADERS)
def test_http_answers_this_machine_and_whoever_has_the_token(
    headers: dict[str, str], status: int, address: tuple[str, int]
) -> None:
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    accepted = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    connection = http.client.HTTPConnection(*address, timeout=30)
    connection.request("POST", "/mcp", json.dumps(body), {**accepted, **headers})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status == status
    assert ("fusion-bench" in text) is (status == 200)


def test_a_token_is_made_where_none_is_given_and_a_short_one_is_refused(folder: Path) -> None:
    with running_http(folder, FUSION_BENCH_MCP_TOKEN="") as (process, started):
        assert len(started["token"]) >= 32
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    words = [*COMMAND, "--http", "0"]
    environment = {**os.environ, "FUSION_BENCH_MCP_TOKEN": "short"}
    ended = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 2
    assert "FUSION_BENCH_MCP_TOKEN" in ended.stderr


def test_the_server_ends_with_its_standard_input(folder: Path) -> None:
    with running_child(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder
    ) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_folder_may_be_named_in_place_of_the_working_directory(
    folder: Path, tmp_path: Path
) -> None:
    words = ("--root", str(folder), "--experiment", str(folder / EXPERIMENT), "--out", "here")
    with connect_http(tmp_path, *words) as served:
        served.find("lint")
        assert [*served.find("list_datasets")["datasets"]] == ["mine"]
        served.find("export", engine="elasticsearch", system="plain", folder="es")
        assert "folder" in served.refuse("export", engine="elasticsearch", folder="../es")
    assert [path.name for path in (tmp_path / "here" / "es").glob("*.json")] == ["search.json"]
    assert not (folder / "here").exists()


def test_without_options_an_experiment_is_named_and_nothing_is_written(folder: Path) -> None:
    text = (folder / EXPERIMENT).read_text(encoding="utf-8")
    counted = "experiments/counted.yaml"
    (folder / counted).write_text(f"{text}  candidates: {{max: 3}}\n", encoding="utf-8")
    with connect_stdio(folder) as served:
        assert "--experiment" in served.refuse("evaluate")
        export = {"engine": "elasticsearch", "experiment": EXPERIMENT, "system": "plain"}
        assert "--out" in served.refuse("export", folder="es", **export)
        text = served.refuse("gate", experiment=counted)
    assert "fusion-bench gate" in text
    assert "counted.yaml" in text


#: Options that are refused, and what the error names.
OPTIONS = [
    (("--experiment", "../other.yaml"), "--experiment"),
    (("--campaign", "nowhere"), "nowhere"),
    (("--root", "nowhere"), "--root"),
    (("--http", "70000"), "--http"),
]


@pytest.mark.parametrize(("words", "named"), OPTIONS)
def test_an_option_outside_the_project_is_refused(
    words: tuple[str, ...],
    named: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    assert main(["mcp", *words]) == 2
    assert named in capsys.readouterr().err


def test_the_extra_is_named_where_the_sdk_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp"]) == 2
    assert "rank-fusion-bench[mcp]" in capsys.readouterr().err
