"""A server of tools as a command, and the SDK's own client that stays connected to it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.child_processes import running_child

#: What the environment of a server holds, and no answer may show.
TOKEN = "a-token-of-the-tests-only"  # noqa: S105 - of a test
SECRET = {"COHERE_API_KEY": "key-that-no-answer-may-show", "FUSION_BENCH_MCP_TOKEN": TOKEN}
COMMAND = (sys.executable, "-m", "fusion_bench", "mcp")


@dataclass(frozen=True)
class Served:
    """A client that is connected to a server."""

    client: Client
    portal: BlockingPortal
    folder: Path

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> CallToolResult:
        result: CallToolResult = self.portal.call(
            self.client.call_tool, tool, dict(arguments or {})
        )
        return result

    def find(self, tool: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """The record that a tool answers with; it succeeds."""
        result = self.call(tool, arguments)
        assert not result.is_error, read_text(result)
        record: dict[str, Any] = result.structured_content
        return record

    def refuse(self, tool: str, **arguments: Any) -> str:  # noqa: ANN401 - JSON
        """Why a tool refuses; it does."""
        result = self.call(tool, arguments)
        assert result.is_error, read_text(result)
        assert result.structured_content is None
        return read_text(result)


@dataclass
class Notes:
    """What a client is told of the progress of a call."""

    notes: list[tuple[float, str]] = field(default_factory=list)
    awaited: str = ""
    reached: anyio.Event = field(default_factory=anyio.Event)

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        self.notes.append((progress, message or ""))
        if self.notes[-1][1].startswith(self.awaited):
            self.reached.set()


def read_text(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@contextmanager
def connect_stdio(folder: Path, *words: str, mode: str = "auto") -> Iterator[Served]:
    """A client that has started a server in a project; ``mode`` is that of the protocol."""
    environment = {**os.environ, **SECRET}
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], *words], env=environment, cwd=folder
    )
    with hold(Client(server, mode=mode), folder) as served:
        yield served


@contextmanager
def connect_http(folder: Path, *words: str, mode: str = "auto") -> Iterator[Served]:
    """A client of a server that runs in a project, on a free port; ``mode`` as above."""
    with running_http(folder, *words) as (_, started):
        headers = {"authorization": f"Bearer {TOKEN}"}
        http = httpx2.AsyncClient(headers=headers, timeout=60)
        transport = streamable_http_client(started["address"], http_client=http)
        with hold(Client(transport, mode=mode), folder) as served:
            yield served
            served.portal.call(http.aclose)


@contextmanager
def hold(client: Client, folder: Path) -> Iterator[Served]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield Served(client, portal, folder)


@contextmanager
def running_http(
    folder: Path, *words: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A server of streamable HTTP, and what it printed when it started."""
    with running_child(
        [*COMMAND, "--http", "0", "--json", *words],
        stdout=subprocess.PIPE,
        cwd=folder,
        env={**os.environ, **SECRET, **environment},
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
