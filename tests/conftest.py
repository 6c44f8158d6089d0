"""What holds in every test process, before anything else is imported."""

import atexit
import gc
import importlib.metadata
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import settings

# They need a browser: `make test-browser` names this folder, and then it is collected.
collect_ignore = ["browser"]

# Compiling ranx takes every process a minute; tests/parity/test_ranx.py compares both forms of it.
os.environ["NUMBA_DISABLE_JIT"] = "1"
# No test finds what another one left behind; those of the cache name a folder of their own.
os.environ["FUSION_BENCH_CACHE"] = "0"
# ir_datasets makes a folder at home when it is imported; tests write to nobody's home.
IR_DATASETS = tempfile.mkdtemp(prefix="ir-datasets-")
atexit.register(shutil.rmtree, IR_DATASETS, ignore_errors=True)
os.environ["IR_DATASETS_HOME"] = IR_DATASETS
# A shell that exports its width would narrow what a pipe gets.
os.environ.pop("COLUMNS", None)
# What gRPC does after a fork, for a client that a test has left, would end the programs that other
# tests start.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
# A shell without job control has its background processes ignore Ctrl-C, and so would the programs
# that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A busy machine is no fault of the code: no test fails by the clock. Each run has new examples;
# `HYPOTHESIS_PROFILE=thorough make tests` tries many of them at once.
settings.register_profile("house", deadline=None, max_examples=40)
settings.register_profile("everyday", deadline=None, max_examples=10)
settings.register_profile("thorough", deadline=None, max_examples=1_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))


#: Folders and files of tests that start processes, servers or databases, read large data, or take
#: seconds: ``make test`` runs them, ``make check`` leaves them out.
SLOW = (
    *("attacks/", "benchmarks/", "parity/", "skill/", "engines/local/", "engines/pull/"),
    *("gate/self_test/", "judging/judge/terminal/", "serving/mcp/"),
    *("campaign/test_attacks/", "campaign/test_masking.py", "campaign/test_shown_queries.py"),
    *("contract/test_output_options.py", "docs/test_from_zero.py", "docs/test_printed_blocks.py"),
    *("engines/export/test_round_trip.py", "gate/test_action.py", "test_benchmarks.py"),
    *("io/formats/test_readers_agree.py", "models/rerank/test_command.py", "test_pytest_plugin.py"),
    *("tune/test_distribution.py", "tune/test_shared_study.py"),
)
TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of :data:`SLOW`."""
    for item in items:
        if item.path.relative_to(TESTS).as_posix().startswith(SLOW):
            item.add_marker(pytest.mark.slow)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew-golden", action="store_true", help="write the golden pages anew")


# The garbage collector would walk through ten thousand tests again and again.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on it collects what tests leave behind, and seldom: there is room for it."""
    gc.freeze()
    gc.set_threshold(100_000)
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def no_progress_lines() -> None:
    """No command that is called here is so slow that standard error says so."""
    from fusion_bench.cli.application import progress

    progress.LINE_INTERVAL = 1e6


@pytest.fixture(autouse=True, scope="session")
def no_waits_for_disks() -> Iterator[None]:
    """Files are written, but nothing waits for the disk: no test pulls the plug."""
    with mock.patch("os.fsync"), mock.patch("fusion_bench.util.databases.SYNCHRONOUS", "OFF"):
        yield


@pytest.fixture(autouse=True, scope="session")
def distributions_read_once() -> Iterator[None]:
    """Each command asks what is installed: files that are read again when a folder changes."""
    read = importlib.metadata.entry_points
    known: dict[object, importlib.metadata.EntryPoints] = {}

    def entry_points(*, group: str) -> importlib.metadata.EntryPoints:
        folders = (Path(entry) for entry in sys.path)
        changes = tuple((str(each), each.stat().st_mtime_ns) for each in folders if each.is_dir())
        if (group, changes) not in known:
            known[group, changes] = read(group=group)
        return known[group, changes]

    with mock.patch("importlib.metadata.entry_points", entry_points):
        yield


@pytest.fixture
def compare_golden(pytestconfig: pytest.Config) -> Callable[[Path, str], None]:
    """Compares a text with a stored page, which ``--renew-golden`` writes anew."""

    def compare(path: Path, text: str) -> None:
        if pytestconfig.getoption("--renew-golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
