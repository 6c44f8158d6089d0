"""Serves the console until the process is told to end, to whoever has its keys."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fusion_bench.console.access import HOSTS, Access
from fusion_bench.console.session import ConsoleSession
from fusion_bench.errors import ConfigError
from fusion_bench.util.files import explain_error
from fusion_bench.util.optional_imports import import_optional

#: Seconds that open requests get when the server ends.
GRACE: Final = 1


def require_packages() -> None:
    """Refuse before anything is read where the server's packages are not there.

    Raises:
        MissingExtraError: Names the extra.
    """
    for package in ("starlette", "uvicorn"):
        import_optional(package, extra="serve", purpose="fusion-bench serve")


def open_socket(port: int) -> socket.socket:
    """A listening socket on 127.0.0.1.

    Args:
        port: 0 = any that is free.

    Raises:
        ConfigError: The port is taken, or may not be used.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOSTS[0], port))
        listener.listen()
    except OSError as error:
        listener.close()
        reason = explain_error(error).lower()
        raise ConfigError(
            f"--port {port}: {reason}: choose another, or leave it out for a free one"
        ) from None
    return listener


def serve_session(
    session: ConsoleSession,
    listener: socket.socket,
    *,
    reports: Path,
    announce: Callable[[str], None],
    open_browser: bool,
) -> None:
    """Serve until Ctrl-C or SIGTERM, which end the command as they end every other.

    Args:
        session: What is served.
        listener: From :func:`open_socket`.
        reports: Folder of reports, for a ledger that cannot stand beside the dataset.
        announce: Called with the address, once it answers.
        open_browser: Whether to open it in a browser.
    """
    import uvicorn

    from fusion_bench.console.application import create_application

    access = Access(listener.getsockname()[1])
    config = uvicorn.Config(
        create_application(session, access, reports),
        http="h11",
        ws="none",
        lifespan="off",
        log_level="critical",  # the endpoints log what fails
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
    )
    announce(access.address)
    if open_browser:
        address = access.make_single_use_address()
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    uvicorn.Server(config).run(sockets=[listener])
    # Only a signal ends it. It raises the signal again, but a background job ignores SIGINT.
    raise KeyboardInterrupt
