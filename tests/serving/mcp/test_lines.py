"""Lines of standard input that are no message are answered, and the server goes on."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.gate.cases import make_project

START: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
CALL: Final = (
    '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"lint","arguments":%s}}'
)
#: A line → the id that it is answered with.
LINES: Final = {
    CALL % (2, '{"overrides":{"a":' + "[" * 250 + "]" * 250 + "}}"): 2,
    CALL % ('"three"', '{"overrides":{"a":' + "[" * 20_000 + "]" * 20_000 + "}}"): "three",
    CALL % (4, '{"experiment":"\\ud800"}'): 4,
    '{"jsonrpc":"2.0","id":5,"method":7}': 5,
    '{"jsonrpc":"2.0","id":"\\ud800","method":7}': None,
    "no JSON": None,
    "[]": None,
    "null": None,
}


def test_a_line_that_is_no_message_is_answered(tmp_path: Path) -> None:
    make_project(tmp_path)
    ready = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    last = CALL % (9, "{}")
    with subprocess.Popen(
        [sys.executable, "-m", "fusion_bench", "mcp"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join([json.dumps(START), ready, *LINES, last, ""]))
        process.stdin.flush()
        answers: list[dict[str, Any]] = [
            json.loads(process.stdout.readline()) for _ in range(len(LINES) + 2)
        ]
        process.stdin.close()
    by_id = {each["id"]: each for each in answers if each["id"] is not None}
    assert sum(each["id"] is None for each in answers) == list(LINES.values()).count(None)
    assert {*LINES.values()} - {None} <= by_id.keys()
    refused = [each["error"] for each in answers if "error" in each]
    assert len(refused) == len(LINES)
    assert {each["code"] for each in refused} == {-32700}
    assert "result" in by_id[9]
