"""A pull that is killed or interrupted loses no answer that came."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests.child_processes import running_child
from tests.engines.pull.cases import write_queries
from tests.engines.pull.loopback import HITS, Reply, SearchServer, found, serving

#: The search that is under way when the pull is killed; those before it were answered.
LAST = 7
QUERIES = "".join(f'{{"id": "q{n}", "text": "t{n}"}}\n' for n in range(20))


def command(folder: Path, url: str) -> list[str]:
    legs = {"mine": {"path": "/search", "body": {"q": "QUERY"}, "hits": "/result/hits"}}
    config = folder / "pull.json.yaml"
    config.write_text(json.dumps({"url": url, "legs": legs, "concurrency": 1}), encoding="utf-8")
    queries = write_queries(folder, QUERIES)
    words = ["pull", "http", "--queries", str(queries)]
    return [*words, "--config", str(config), "--out", str(folder / "mine"), "--json"]


@pytest.mark.parametrize(
    ("ending", "status"),
    [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)],
)
def test_no_answer_is_asked_for_twice(
    tmp_path: Path, ending: signal.Signals, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    pid: list[int] = []

    def answer(number: int, _: object) -> Reply:
        if number == LAST:
            os.kill(pid[0], ending)
            server.release.wait(30)  # no answer, whatever the machine does meanwhile
        return found(HITS)

    with serving(SearchServer(answer=answer)) as server:
        program = [sys.executable, "-m", "fusion_bench", *command(tmp_path, server.url)]
        with running_child(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
            pid.append(first.pid)
            first.communicate(timeout=120)
        assert first.returncode == status
        server.release.set()
        assert main(command(tmp_path, server.url)) == 0
    assert json.loads(capsys.readouterr().out)["asked"] == 20 - LAST
    asked = [request["q"] for request in server.requests]
    assert asked == [*(f"t{n}" for n in range(LAST + 1)), *(f"t{n}" for n in range(LAST, 20))]
    assert (tmp_path / "mine/dataset.yaml").exists()
