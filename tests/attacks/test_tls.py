"""Servers whose TLS cannot be trusted, or is none: one line without the key, which is not sent."""

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.attacks.attack import Attack
from tests.attacks.http_echoes import KEY
from tests.attacks.runner import run_attack
from tests.models.rerank.collection import make

VARIABLE = "TLS_API_KEY"
#: Does something with a connection; returns the plain text that it received.
Handler = Callable[[socket.socket], bytes]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate that nobody but itself has signed."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("the program openssl makes the certificate")
    folder = tmp_path_factory.mktemp("certificate")
    made, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-days", "30000", "-keyout", key, "-out", made],
        check=True, capture_output=True,
    )  # fmt: skip
    both = folder / "both.pem"
    both.write_bytes(made.read_bytes() + key.read_bytes())
    return both


@contextmanager
def serve(handle: Handler) -> Iterator[tuple[int, list[bytes]]]:
    """The port of a server, and the plain text of each of its connections."""
    received: list[bytes] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connection.settimeout(60)
                with connection:
                    try:
                        received.append(handle(connection))
                    except OSError:
                        received.append(b"")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listener.getsockname()[1], received
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def close_at_once(_: socket.socket) -> bytes:
    return b""


def answer_without_tls(connection: socket.socket) -> bytes:
    connection.recv(2**16)  # the client's hello
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    return b""


def send_noise(connection: socket.socket) -> bytes:
    connection.recv(2**16)
    connection.sendall(b"\x16\x03\x03\xff\xff" + b"\x00" * 2**14)
    return b""


def attack(
    root: Path, port: int, says: str, monkeypatch: pytest.MonkeyPatch, scheme: str = "https"
) -> None:
    make(root)
    monkeypatch.setenv(VARIABLE, KEY)
    words = ("rerank", "--dataset", "tiny", "--system", "rrf", "--provider", "tei")
    where = ("--set", f"base_url={scheme}://127.0.0.1:{port}", "--set", f"key={VARIABLE}")
    options = (*words, *where, "--store", "s.sqlite")
    said = (f"error: https://127.0.0.1:{port}/info: ", says)
    run_attack(Attack("tls", options, says=said, never=(KEY[:6],), writes=("s.sqlite",)), root)


@pytest.mark.parametrize("scheme", ["https", "HTTPS", "hTTps"])
def test_a_certificate_that_nobody_signed_is_refused(
    scheme: str, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def handle(connection: socket.socket) -> bytes:
        with context.wrap_socket(connection, server_side=True) as wrapped:
            return wrapped.recv(2**16)

    with serve(handle) as (port, received):
        attack(tmp_path, port, "certificate verify failed", monkeypatch, scheme)
    assert received == [b""]


@pytest.mark.parametrize(
    ("handle", "says"),
    [(close_at_once, ""), (answer_without_tls, "SSL"), (send_noise, "SSL")],
)
def test_what_is_no_tls_is_one_line(
    handle: Handler, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(handle) as (port, received):
        attack(tmp_path, port, says, monkeypatch)
    assert len(received) == 1
