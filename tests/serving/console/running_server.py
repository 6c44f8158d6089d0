"""The console behind a real server on loopback: in a thread of the test, or as a command."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from fusion_bench.serving.console.application import create_application
from fusion_bench.serving.console.session import ConsoleSession
from fusion_bench.util.loopback import Access, open_socket
from tests.child_processes import running_child


@contextmanager
def running_command(experiment: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``fusion-bench serve`` in a session of its own, which ends with the context at the latest."""
    command = [sys.executable, "-m", "fusion_bench", "serve", str(experiment)]
    with running_child(
        [*command, "--no-open", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())["address"]


@contextmanager
def serve_in_thread(session: ConsoleSession, reports: Path) -> Iterator[Access]:
    """Serve while the context lasts."""
    listener = open_socket(0)
    access = Access(listener.getsockname()[1])
    app = create_application(session, access, reports)
    config = uvicorn.Config(app, http="h11", ws="none", lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield access
    server.should_exit = True
    thread.join()
    listener.close()
