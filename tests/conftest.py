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


#: Folders and files whose tests start processes or servers, read large data or the built-in
#: collections, draw pictures, simulate, or take seconds: ``make test`` runs them, ``make check``
#: leaves them out. A single slow test of another file has ``@pytest.mark.slow``.
SLOW = (
    *("attacks/", "benchmarks/", "parity/", "skill/", "report/plots/", "gate/self_test/"),
    *("engines/local/", "engines/pull/", "engines/connectors/test_chroma_server.py"),
    *("engines/export/test_round_trip.py", "io/formats/test_readers_agree.py"),
    *(f"campaign/test_{name}.py" for name in ("ask", "attacks", "closing", "commands", "masking")),
    *(f"campaign/test_{name}.py" for name in ("opening", "server", "shown_queries")),
    *("serving/mcp/", "serving/live/test_http_example.py", "serving/console/test_server.py"),
    *("judging/judge/terminal/", "models/rerank/test_command.py"),
    *(f"e2e/test_{name}.py" for name in ("agents_page", "brief_output", "obstacles")),
    *("e2e/test_machine_judge.py", "e2e/test_table_widths.py", "contract/test_output_options.py"),
    *("docs/test_from_zero.py", "docs/test_printed_blocks.py", "docs/test_ways.py"),
    *("gate/test_action.py", "gate/test_answers.py", "gate/test_repeats.py"),
    *("importers/datasets/test_attack.py", "importers/datasets/test_referee.py"),
    *(f"tune/test_{name}" for name in ("abstain", "distribution", "run", "shared_study")),
    *("util/test_processes.py", "util/test_special_functions.py", "api/test_pages.py"),
    *("test_benchmarks.py", "test_exports.py", "test_pytest_plugin.py"),
)
TESTS = Path(__file__).parent


def is_slow(path: Path) -> bool:
    return path.relative_to(TESTS).as_posix().startswith(SLOW)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """``-m "not slow"`` does not even import the files of :data:`SLOW`."""
    is_left_out = collection_path.suffix == ".py" and is_slow(collection_path)
    return True if is_left_out and config.option.markexpr == "not slow" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_slow(item.path):
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


def read_distributions_once() -> Callable[..., importlib.metadata.EntryPoints]:
    """Return an ``entry_points`` that reads files again only if a folder changed."""
    read: Callable[..., importlib.metadata.EntryPoints] = importlib.metadata.entry_points
    known: dict[object, importlib.metadata.EntryPoints] = {}

    def entry_points(**wanted: str) -> importlib.metadata.EntryPoints:
        folders = (Path(entry) for entry in sys.path)
        changes = tuple((str(each), each.stat().st_mtime_ns) for each in folders if each.is_dir())
        key = (*wanted.items(), changes)
        if key not in known:
            known[key] = read(**wanted)
        return known[key]

    return entry_points


# Each command asks, and so does collecting the tests.
mock.patch("importlib.metadata.entry_points", read_distributions_once()).start()


@pytest.fixture
def compare_golden(pytestconfig: pytest.Config) -> Callable[[Path, str], None]:
    """Compares a text with a stored page, which ``--renew-golden`` writes anew."""

    def compare(path: Path, text: str) -> None:
        if pytestconfig.getoption("--renew-golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
