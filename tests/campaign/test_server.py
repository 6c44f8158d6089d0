"""A served campaign: a real server on loopback, a client without the judgments."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

import fusion_bench as fb
from fusion_bench.campaign.client import TOKEN
from fusion_bench.cli import main
from fusion_bench.errors import FusionBenchError, ProviderError
from fusion_bench.util.local_requests import LEAST_TOKEN, read_access
from tests import campaign_project as project
from tests.attacks.hostile_server import serve_answers
from tests.attacks.http_answers import plain_json
from tests.campaign.test_ask import BOTH

KEY = "t" * LEAST_TOKEN


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a served campaign, and its project, whose data are gone."""
    root = project.make(tmp_path_factory.mktemp("served"))
    project.open_made(root, asks=50)
    words = ["campaign", "serve", str(root / project.CAMPAIGN), "--json"]
    environment = {**os.environ, TOKEN: KEY}
    with subprocess.Popen(
        [sys.executable, "-m", "fusion_bench", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield line.split('"address":"')[1].split('"')[0], root
        process.send_signal(signal.SIGTERM)


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, KEY)


def test_it_answers_as_the_folder_does(served: tuple[str, Path], tmp_path: Path) -> None:
    address, _ = served
    root = project.make(tmp_path)
    project.open_made(root, asks=50)
    for k in (5, 10):
        changes = [f"fusion.k={k}"]
        here = fb.ask_campaign(root / project.CAMPAIGN, BOTH | {"depth": 1}, changes=changes)
        there = fb.ask_campaign(address, BOTH | {"depth": 1}, changes=changes)
        assert there.model_copy(update={"campaign": here.campaign}) == here
    assert fb.campaign_status(address).asked == 2


def test_what_breaks_a_rule_is_said_by_the_server(served: tuple[str, Path]) -> None:
    with pytest.raises(FusionBenchError, match="fusions"):
        fb.ask_campaign(served[0], {"runs": ["weak"], "fusions": 1})


@pytest.mark.parametrize(
    ("system", "changes"),
    [
        ({"runs": ["weak"], "fusion": {"method": "IPython.__main__:x"}}, ()),
        ({"runs": ["weak"]}, ["fusion={method: 'IPython.__main__:x'}"]),
        (None, ["fusion=IPython.__main__:x"]),
    ],
)
def test_whoever_asks_makes_it_import_nothing(
    served: tuple[str, Path], system: dict[str, Any] | None, changes: Sequence[str]
) -> None:
    with pytest.raises(FusionBenchError, match="would import code"):
        fb.ask_campaign(served[0], system, changes=changes)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": f"Bearer {KEY}", "host": "evil.example"}, 403),
        ({"authorization": f"Bearer {KEY}", "origin": "https://evil.example"}, 403),
        ({"authorization": f"Bearer {KEY}"}, 200),
    ],
)
def test_only_whoever_has_the_token_is_answered(
    served: tuple[str, Path], headers: dict[str, str], status: int
) -> None:
    answer = httpx.get(f"{served[0]}/status", headers=headers)
    assert answer.status_code == status
    assert KEY not in answer.text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b'{"system": 1}', 400),
        (b"x" * 300_000, 413),
        (b'{"a": NaN}', 400),
        (b'{"system": {"runs": ["\\ud800"]}}', 400),
        (b'{"changes": ["fusion.k=\\udfff"]}', 400),
        (b'{"system": {"runs": ' + b"[" * 250 + b"]" * 250 + b"}}", 400),
        (b'{"system": {"runs": ' + b"[" * 20_000 + b"]" * 20_000 + b"}}", 400),
    ],
)
def test_hostile_bodies_are_refused(served: tuple[str, Path], body: bytes, status: int) -> None:
    headers = {"authorization": f"Bearer {KEY}"}
    answer = httpx.post(f"{served[0]}/ask", content=body, headers=headers)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])


def test_a_wrong_token_of_the_client_is_an_error_without_the_token(
    served: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, "wrong" * 5)
    with pytest.raises(FusionBenchError) as caught:
        fb.campaign_status(served[0])
    assert "wrong" * 5 not in str(caught.value)


def test_it_needs_its_files_no_more_but_for_the_ledger(served: tuple[str, Path]) -> None:
    address, root = served
    shutil.move(root / "datasets/made/qrels.txt", root / "away.txt")
    try:
        assert fb.ask_campaign(address, {"runs": ["weak"], "depth": 3}).answer == "keep"
    finally:
        shutil.move(root / "away.txt", root / "datasets/made/qrels.txt")


def test_a_short_token_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from fusion_bench.errors import ConfigError

    monkeypatch.setenv(TOKEN, "short")
    with pytest.raises(ConfigError, match=str(LEAST_TOKEN)):
        read_access(1, TOKEN)


@pytest.mark.parametrize(
    "answer", [None, True, 0, 10**29, 1e300, "ship", [], [{}], {}, {"answer": "ship"}, {"a": None}]
)
def test_an_answer_that_is_none_is_one_error(answer: object, tmp_path: Path) -> None:
    """Whatever JSON the server of a campaign sends."""
    candidate = tmp_path / "candidate.yaml"
    candidate.write_text("runs: [weak]\n")
    with serve_answers(lambda _: plain_json(answer)) as server:
        for words in (["status", server.url], ["ask", server.url, str(candidate)]):
            assert main(["campaign", *words]) == 2
        with pytest.raises(ProviderError, match="malformed answer") as caught:
            fb.campaign_status(server.url)
    assert caught.value.kind == "malformed"
