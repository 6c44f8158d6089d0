"""The server of the console, and the command that starts it."""

import http.client
import json
import re
import signal
import socket
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import serve
from fusion_bench.errors import ConfigError
from fusion_bench.io.looks import read_looks
from fusion_bench.serving.console.session import ConsoleSession
from fusion_bench.util.local_requests import MOST_BYTES
from fusion_bench.util.loopback import Access, open_socket
from tests.serving.console.project import make_project
from tests.serving.console.running_server import running_command, serve_in_thread

SETTING = {"system": "boosted", "parameters": {"fusion.k": 5}}


@dataclass
class Reply:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self.body)


@dataclass
class Client:
    access: Access

    def send(
        self, method: str, path: str, body: bytes | None = None, **headers: str | None
    ) -> Reply:
        """Send a request with the cookie, unless a header says otherwise; None = no such header."""
        given: dict[str, str | None] = {
            "cookie": f"{self.access.cookie}={self.access.session}",
            "content_type": "application/json" if body is not None else None,
            **headers,
        }
        sent = {k.replace("_", "-"): v for k, v in given.items() if v is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.access.port, timeout=60)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    def post(self, path: str, data: object, **headers: str | None) -> Reply:
        return self.send("POST", path, json.dumps(data).encode(), **headers)


@pytest.fixture(scope="module")
def client(session: ConsoleSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serve_in_thread(session, tmp_path_factory.mktemp("reports")) as access:
        yield Client(access)


def test_addresses_open_the_page_and_bring_the_cookie(client: Client) -> None:
    path = client.access.address.partition(f":{client.access.port}")[2]
    reply = client.send("GET", path, cookie=None)
    assert reply.status == 200
    cookie = reply.headers["set-cookie"]
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert client.access.token not in cookie
    again = client.send("GET", "/", cookie=cookie.partition(";")[0])
    assert (again.status, again.headers["set-cookie"]) == (200, None)
    assert again.body == reply.body
    path = client.access.make_single_use_address().partition(f":{client.access.port}")[2]
    assert [client.send("GET", path, cookie=None).status for _ in range(2)] == [200, 403]


def test_every_answer_forbids_scripts_and_frames_of_others(client: Client) -> None:
    for path in ("/", "/nothing", "/api/console", "/assets/nothing.js"):
        headers = client.send("GET", path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["server"] is None or "uvicorn" in headers["server"]
        assert headers["access-control-allow-origin"] is None


def test_every_file_that_the_page_names_is_served(client: Client) -> None:
    """A module or style that is not there would leave an empty page."""
    page = client.send("GET", "/").body.decode()
    waiting = re.findall(r'(?:href|src)="/assets/([^"]+)"', page)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        reply = client.send("GET", f"/assets/{name}")
        kind = "css" if name.endswith(".css") else "javascript"
        assert (reply.status, reply.headers["content-type"]) == (200, f"text/{kind}; charset=utf-8")
        seen.add(name)
        imported = re.findall(r'from "\./([^"]+)";', reply.body.decode())
        waiting += [each for each in imported if each not in seen]
    assert {"main.js", "dom.js", "console.css", "page.css"} <= seen


def test_the_endpoints_answer(client: Client, session: ConsoleSession) -> None:
    assert client.send("GET", "/api/console").json == session.describe()
    answer = client.post("/api/answer", {"setting": SETTING, "previous": {"system": "boosted"}})
    assert answer.status == 200
    assert answer.json["previous"]["same"] <= 30
    details = client.post("/api/query", {"query": "q01", "setting": SETTING})
    assert details.json["query"] == "q01"
    shown = client.post("/api/save", {"setting": SETTING, "name": "mine", "write": False})
    assert shown.json["is_written"] is False


def test_looks_and_taken_names_need_a_confirmation(client: Client, session: ConsoleSession) -> None:
    ledger = session.dataset_file.parent / "looks.jsonl"
    assert client.post("/api/verdict", {"setting": SETTING}).status == 409
    assert read_looks(ledger) == []
    verdict = client.post("/api/verdict", {"setting": SETTING, "confirm": True})
    assert verdict.status == 200
    assert verdict.json["look_number"] == 1
    assert [look.system for look in read_looks(ledger)] == ["boosted"]
    (session.source.path.parent / "taken.yaml").write_text("x", encoding="utf-8")
    body = {"setting": SETTING, "name": "taken"}
    assert client.post("/api/save", body).status == 409
    assert client.post("/api/save", {**body, "overwrite": True}).status == 200


@pytest.mark.parametrize("cookie", [None, "", "x=y", "{name}=wrong", "{name}=", "{name}=é", '"'])
def test_no_answer_without_the_cookie(client: Client, cookie: str | None) -> None:
    given = cookie and cookie.format(name=client.access.cookie).encode().decode("latin-1")
    assert client.send("GET", "/api/console", cookie=given).status == 403
    assert client.post("/api/answer", {"setting": SETTING}, cookie=given).status == 403
    assert client.send("GET", "/", cookie=given).status == 403
    for token in ("", "wrong", "%C3%A9", client.access.session):
        assert client.send("GET", f"/?token={token}", cookie=given).status == 403


def test_cookies_of_others_and_the_own_origin_do_not_matter(client: Client) -> None:
    own = f"{client.access.cookie}={client.access.session}"
    for cookie in (
        f'a={{"x": "y"; {own}',
        f"{own}; =; b=[1,2]",
        f"{client.access.cookie}=old; {own}",
    ):
        assert client.send("GET", "/api/console", cookie=cookie).status == 200
    for name in ("127.0.0.1", "localhost"):
        own = f"{name}:{client.access.port}"
        reply = client.post("/api/answer", {"setting": SETTING}, origin=f"http://{own}", host=own)
        assert reply.status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "0.0.0.0:{port}", "[::1]:{port}"],
)
def test_another_host_is_refused(client: Client, host: str) -> None:
    """DNS rebinding sends the name of the other site."""
    given = host.format(port=client.access.port)
    assert client.send("GET", "/api/console", host=given).status == 403
    assert client.post("/api/answer", {"setting": SETTING}, host=given).status == 403


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1", ""]
)
def test_another_origin_is_refused(client: Client, origin: str) -> None:
    given = origin.format(port=client.access.port)
    assert client.post("/api/answer", {"setting": SETTING}, origin=given).status == 403


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[]", "a JSON object"),
        (b"{}", "setting: is required"),
        (b'{"setting": {"system": "boosted"}, "x": 1}', "unknown key 'x'"),
        (b'{"setting": {"system": "boosted"}, "setting": {}}', "twice"),
        (b'{"setting": {"system": "boosted", "parameters": {"fusion.k": NaN}}}', "NaN"),
        (b'{"setting": {"system": "boosted", "parameters": {"fusion.k": 1e999}}}', "finite"),
        (b'{"setting": {"system": "boosted", "parameters": {"fusion.k": 1e300}}}', "fusion.k"),
        (
            b'{"setting": {"system": "boosted", "parameters": {"depth": ' + b"9" * 31 + b"}}}",
            "digits",
        ),
        (b'{"setting": {"system": "<script>"}}', "unknown system '<script>'"),
        (b"[" * 100_000, "too deep"),
        (b'{"setting": ' * 10_000 + b"1" + b"}" * 10_000, "too deep"),
    ],
)
def test_hostile_bodies_are_refused_in_one_line(client: Client, body: bytes, message: str) -> None:
    reply = client.send("POST", "/api/answer", body)
    assert reply.status == 400
    assert message in reply.json["error"]
    assert "\n" not in reply.json["error"]


def test_too_many_parameters_and_forms_are_refused(client: Client) -> None:
    many = {f"fusion.x{n}": 1 for n in range(300)}
    reply = client.post("/api/answer", {"setting": {"system": "boosted", "parameters": many}})
    assert reply.status == 400
    assert "200" in reply.json["error"]
    body = json.dumps({"setting": SETTING}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        assert client.send("POST", "/api/answer", body, content_type=kind).status == 415


def test_a_long_body_is_refused_without_being_read(client: Client) -> None:
    """The server answers while the client still has most of 10 MB to send."""
    with socket.create_connection(("127.0.0.1", client.access.port), timeout=60) as sender:
        head = (
            f"POST /api/answer HTTP/1.1\r\nhost: 127.0.0.1:{client.access.port}\r\n"
            f"cookie: {client.access.cookie}={client.access.session}\r\n"
            "content-type: application/json\r\ncontent-length: 10000000\r\n\r\n"
        )
        sender.sendall(head.encode() + b" " * (MOST_BYTES + 1))
        assert sender.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/answer", 405),
        ("DELETE", "/api/console", 405),
        ("GET", "/nothing", 404),
        ("GET", "/assets/../session.py", 404),
        ("GET", "/assets/%2e%2e%2fsession.py", 404),
        ("GET", "/assets/__init__.py", 404),
        ("OPTIONS", "/api/answer", 405),
    ],
)
def test_other_paths_and_methods(client: Client, method: str, path: str, status: int) -> None:
    reply = client.send(method, path)
    assert reply.status == status
    assert reply.json["error"]


def test_a_defect_is_one_line_and_the_console_goes_on(
    client: Client, session: ConsoleSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret /path")

    monkeypatch.setattr(type(session), "answer", fail)
    reply = client.post("/api/answer", {"setting": SETTING})
    assert reply.status == 500
    assert "secret" not in reply.json["error"]
    monkeypatch.undo()
    assert client.post("/api/answer", {"setting": SETTING}).status == 200


def test_taken_ports_and_missing_packages_are_one_line(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=f"--port {client.access.port}: "):
        open_socket(client.access.port)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(Exception, match=r"rank-fusion-bench\[serve\]") as caught:
        serve.require_packages()
    assert "\n" not in str(caught.value)


# ── the command as a process of its own: the address it prints, and how signals end it


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
