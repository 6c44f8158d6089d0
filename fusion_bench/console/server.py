"""Serves the console until the process is told to end, to whoever has its keys."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

from fusion_bench.console.session import ConsoleSession
from fusion_bench.util.loopback import Access, run_application
from fusion_bench.util.optional_imports import import_optional


def require_packages() -> None:
    """Refuse before anything is read where the server's packages are not there.

    Raises:
        MissingExtraError: Names the extra.
    """
    for package in ("starlette", "uvicorn"):
        import_optional(package, extra="serve", purpose="fusion-bench serve")


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
        listener: A listening socket on 127.0.0.1.
        reports: Folder of reports, for a ledger that cannot stand beside the dataset.
        announce: Called with the address, once it answers.
        open_browser: Whether to open it in a browser.
    """
    from fusion_bench.console.application import create_application

    access = Access(listener.getsockname()[1])
    application = create_application(session, access, reports)
    announce(access.address)
    if open_browser:
        address = access.make_single_use_address()
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    run_application(application, listener)
