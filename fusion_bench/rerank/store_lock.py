"""One run at a time asks a model for a store; two at once would pay for the same scores."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import astuple
from pathlib import Path

from fusion_bench.rerank.protocol import Identity
from fusion_bench.util.files.file_locks import take_lock

log = logging.getLogger("fusion_bench.rerank")

#: A lock that has vanished so often while it was opened is in a folder that takes no files.
MOST_VANISHED = 1000


@contextmanager
def lock_models(store: Path, identities: Iterable[Identity]) -> Iterator[None]:
    """Hold a store's lock for each model; wait for a run that holds one of them.

    A lock is a file beside the store, removed in the end. The system releases the lock of a killed
    run. Runs that ask other models do not wait. Without locks of files nobody waits.

    Args:
        store: The file of the score store.
        identities: The models as configured.
    """
    labels = {_lock_path(store, identity): identity.label for identity in identities}
    with ExitStack() as stack:
        for path in sorted(labels):  # in one order, or two runs would wait for each other
            stack.enter_context(_hold_lock(path, f"{store}: another run asks {labels[path]}"))
        yield


@contextmanager
def _hold_lock(path: Path, conflict: str) -> Iterator[None]:
    lock = _wait_for_lock(path, conflict)
    try:
        yield
    finally:
        if lock is not None:
            path.unlink(missing_ok=True)
            os.close(lock)


def _wait_for_lock(path: Path, conflict: str) -> int | None:
    """The descriptor that holds a lock; None where there are no locks."""
    has_waited = False
    vanished = 0
    while vanished < MOST_VANISHED:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            lock = take_lock(path, wait=has_waited)
        except FileNotFoundError:
            vanished += 1  # the run that held it has just removed it, or the folder takes no file
            continue
        except OSError:
            return None
        if lock is not None:
            return lock
        if not has_waited:
            log.warning("%s and keeps its scores there: waiting for its end", conflict)
        has_waited = True
    return None


def _lock_path(store: Path, identity: Identity) -> Path:
    """The file that is locked; stores of two names that lead to one file have one lock."""
    digest = hashlib.sha256(json.dumps(astuple(identity)).encode()).hexdigest()[:16]
    return Path(f"{os.path.realpath(store)}.{digest}.lock")
