"""The server: calls of tools, one heavy one at a time, over stdio and streamable HTTP.

A call works in a thread. Its progress is sent to the client, and it ends before its next step once
the client has cancelled it; the next heavy call begins when it has ended.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from typing import Any, Final

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from fusion_bench._version import __version__
from fusion_bench.config.models import parse_model
from fusion_bench.errors import FusionBenchError
from fusion_bench.report.markdown import render_summary
from fusion_bench.serving.mcp.project import Project
from fusion_bench.serving.mcp.tools import TOOLS, ToolAnswer, Tools
from fusion_bench.util.files import explain_error
from fusion_bench.util.formatting import Progress, checked_by, is_encodable
from fusion_bench.util.local_requests import serve_guarded
from fusion_bench.util.loopback import open_socket
from fusion_bench.util.signals import handlers

log = logging.getLogger("fusion_bench.mcp")

#: The environment variable with the token that clients of HTTP bring.
TOKEN: Final = "FUSION_BENCH_MCP_TOKEN"  # noqa: S105 - its name
#: Where clients of HTTP find the server.
PATH: Final = "/mcp"
#: An event of streamable HTTP has at most 1 MiB for the SDK's client.
MOST_CHARACTERS: Final = 900_000
#: Seconds between two notes of progress.
PAUSE: Final = 0.2
#: Light calls at once.
LIGHT_CALLS: Final = 4
#: The id in a line that is no JSON, or too deep.
REQUEST_ID: Final = re.compile(r'"id"\s*:\s*("[^"\\]*"|\d{1,18})')
INSTRUCTIONS: Final = (
    "Evaluates how ranked lists are fused and reranked on judged queries. Begin with "
    "list_datasets. evaluate shows what a configuration does on tuning queries; where there is "
    "campaign_ask, it decides on queries that nobody sees. Only people change baselines, judgments "
    "and queries."
)


class ToolServer:
    """The server of a project, before any transport.

    Args:
        project: What it serves.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        is_asked = project.referee is not None
        self._tools = {n: each for n, each in TOOLS.items() if is_asked or not each.needs_campaign}
        self._limits = {False: anyio.CapacityLimiter(1), True: anyio.CapacityLimiter(LIGHT_CALLS)}
        self.protocol: Server[dict[str, Any]] = Server(
            "fusion-bench",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )

    async def _list_tools(
        self, _context: ServerRequestContext, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = [
            types.Tool(
                name=tool.name,
                description=tool.description,
                input_schema=tool.arguments.model_json_schema(),
                output_schema=tool.output_schema,
                annotations=types.ToolAnnotations(
                    read_only_hint=not tool.writes, destructive_hint=False, open_world_hint=False
                ),
            )
            for tool in self._tools.values()
        ]
        return types.ListToolsResult(tools=tools)

    async def _call_tool(
        self, context: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools)
            raise MCPError(types.INVALID_PARAMS, f"unknown tool: known: {known}")

        def run() -> types.CallToolResult:
            """Call the tool, in a thread."""
            tools = Tools(self._project, _report_to(context))
            with checked_by(anyio.from_thread.check_cancelled):
                try:
                    given = parse_model(tool.arguments, params.arguments or {}, tool.name)
                    named = {name: getattr(given, name) for name in tool.arguments.model_fields}
                    return self._answer(tool.function(tools, **named))
                except FusionBenchError as error:
                    return _fail(self._project.describe_error(error))
                except OSError as error:
                    return _fail(f"{tool.name}: {explain_error(error)}")
                except Exception as error:
                    log.exception("%s failed", tool.name)
                    return _fail(
                        f"{tool.name}: an error of the server, {type(error).__name__}: see its log"
                    )

        return await anyio.to_thread.run_sync(run, limiter=self._limits[tool.is_light])

    def _answer(self, answer: ToolAnswer) -> types.CallToolResult:
        record, page = answer
        text = self._project.hide_paths(to_json(record, inf_nan_mode="null").decode())
        if len(text) > MOST_CHARACTERS:
            raise FusionBenchError(
                f"the answer has {len(text):,} characters, and clients take about "
                f"{MOST_CHARACTERS:,}: ask for fewer systems, or without per_query"
            )
        shown = text if page is None else render_summary(page)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=self._project.hide_paths(shown))],
            structured_content=from_json(text),
        )


def _fail(message: str) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=message)], is_error=True
    )


def _report_to(context: ServerRequestContext) -> Progress:
    """Reports to whoever called a tool; raises in its thread where the call was cancelled."""
    last, steps = 0.0, 0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal last, steps
        anyio.from_thread.check_cancelled()
        if (now := time.monotonic()) < last + PAUSE:
            return
        last, steps = now, steps + 1
        message = f"{stage}, {done} of {total}"
        anyio.from_thread.run(context.session.report_progress, float(steps), None, message)

    return report


def serve(project: Project, port: int | None, announce: Callable[[str, str | None], None]) -> None:
    """Serve a project.

    Args:
        project: What is served.
        port: Of this machine, for clients of HTTP; None = whoever started this process, until its
            standard input ends.
        announce: As for :func:`fusion_bench.util.local_requests.serve_guarded`.
    """
    server = ToolServer(project).protocol
    if port is None:
        handlers.install()  # the thread that waits for standard input hears of no other end
        anyio.run(_serve_stdio, server)
        return
    application = server.streamable_http_app(streamable_http_path=PATH)
    with open_socket(port, option="--http") as listener:
        serve_guarded(application, listener, announce, variable=TOKEN, path=PATH, has_lifespan=True)


async def _serve_stdio(server: Server[dict[str, Any]]) -> None:
    """Serve standard input, and answer lines that are no message, which the SDK drops."""
    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as group:
        sender, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def hand_on() -> None:
            async with sender:
                async for message in incoming:
                    if isinstance(message, Exception):
                        await outgoing.send(SessionMessage(_refuse_line(message)))
                    else:
                        await sender.send(message)

        group.start_soon(hand_on)
        await server.run(messages, outgoing, server.create_initialization_options())


def _refuse_line(error: Exception) -> types.JSONRPCError:
    """The answer to a line that is no message, with the id of its request if it has one."""
    inputs = (
        [each["input"] for each in error.errors()] if isinstance(error, ValidationError) else []
    )
    requests = [each for each in inputs if isinstance(each, dict)]  # JSON, and no message
    texts = [each for each in inputs if isinstance(each, str)]  # no JSON: the whole line
    found = next(filter(None, map(REQUEST_ID.search, texts)), None)
    given = requests[0].get("id") if requests else None if found is None else json.loads(found[1])
    is_id = isinstance(given, str | int) and is_encodable(str(given))
    message = "not a message: JSON is needed, at most some 200 brackets deep, in valid Unicode"
    return types.JSONRPCError(
        jsonrpc="2.0",
        id=given if is_id else None,
        error=types.ErrorData(code=types.PARSE_ERROR, message=message),
    )
