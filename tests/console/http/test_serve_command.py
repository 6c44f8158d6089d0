"""The command as a process of its own: the address it prints, and how signals end it."""

from __future__ import annotations

import signal
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from fusion_bench.console import server
from tests.console.project import make_project
from tests.console.running_server import running_command


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it(tmp_path: Path, number: signal.Signals, code: int) -> None:
    experiment = make_project(tmp_path)
    with running_command(experiment) as (process, address):
        with urllib.request.urlopen(address, timeout=60) as reply:  # noqa: S310 - our own address
            assert reply.status == 200
            cookie = reply.headers["set-cookie"].partition(";")[0]
        host = address.removeprefix("http://").partition("/")[0]
        port = int(host.partition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as waiting:
            # A request that is never complete, as one whose answer takes long.
            head = f"POST /api/answer HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\n"
            head += "content-type: application/json\r\nexpect: 100-continue\r\n"
            waiting.sendall(f"{head}content-length: 9\r\n\r\n".encode())
            assert waiting.recv(100).startswith(b"HTTP/1.1 100 ")  # the server reads the body
            process.send_signal(number)
            _, errors = process.communicate(timeout=120)
    assert process.returncode == code
    assert "Traceback" not in errors


def test_missing_packages_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(Exception, match=r"rank-fusion-bench\[serve\]") as caught:
        server.require_packages()
    assert "\n" not in str(caught.value)
