"""A service of the user's behind HTTP; a pull that is killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from fusion_bench.config.options import list_options
from fusion_bench.engines.connectors._base import build_connector
from fusion_bench.engines.options import PullOptions
from fusion_bench.engines.pull import PulledDataset, pull_dataset
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.io.dataset import load_dataset
from tests.child_processes import running_child
from tests.engines.pull.cases import QUERIES, write_queries
from tests.engines.pull.loopback import HITS, Reply, SearchServer, found, serving
from tests.models.rerank.server import closed_port

BODY = {"q": "QUERY", "size": "DEPTH", "nested": [{"v": "QUERY"}]}
LEG = {"path": "/search", "body": BODY, "hits": "/result/hits", "text": "/text"}


def pull(folder: Path, url: str, *, text: str = QUERIES, **given: Any) -> PulledDataset:  # noqa: ANN401 - of two kinds
    names = {each.name for each in list_options(PullOptions)} & given.keys()
    options = {name: given.pop(name) for name in names}
    settings = {"url": url, "legs": {"mine": LEG}, "wait": 0, "attempts": 2, **given}
    connector = build_connector("http", settings)
    queries = write_queries(folder, text)
    return pull_dataset(connector, queries, PullOptions(out=folder / "mine", **options))


def answering(*replies: Reply) -> SearchServer:
    return SearchServer(answer=lambda n, _: replies[min(n, len(replies) - 1)])


def test_the_query_fills_the_request_and_pointers_find_the_hits(tmp_path: Path) -> None:
    hostile = 'two", "size": 1, "x": "QUERY'
    text = json.dumps({"id": "q1", "text": hostile})
    fused = {**LEG, "path": "/fused", "id": "/text", "params": {"n": "DEPTH", "all": "QUERY"}}
    with serving(SearchServer()) as server:
        pull(tmp_path, server.url, text=f"{text}\n", depth=7, texts=True, fused=fused)
    assert {"q": hostile, "size": 7, "nested": [{"v": hostile}]} in server.requests
    assert server.paths["/search"] == 1
    assert sum(path.startswith("/fused?n=7&all=two%22") for path in server.paths) == 1
    runs = load_dataset(tmp_path / "mine/dataset.yaml", every_query=True).runs
    assert runs["mine"].to_dict() == {"q1": {"a": 2.0, "b": 1.0}}
    assert runs["engine-fused"].to_dict() == {"q1": {"x": 2.0, "y": 1.0}}
    documents = (tmp_path / "mine/documents.jsonl").read_text(encoding="utf-8")
    assert documents.splitlines()[0] == '{"id": "a", "text": "x"}'


def test_a_vector_fills_the_request(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.jsonl"
    lines = '{"id": "q1", "vector": [0.5, 1]}\n{"id": "q2", "vector": [1, 2]}\n'
    vectors.write_text(lines, encoding="utf-8")
    leg = {**LEG, "body": {"knn": "QUERY_VECTOR"}, "distance": True}
    with serving(SearchServer(answer=lambda *_: found(HITS[::-1]))) as server:
        pull(tmp_path, server.url, legs={"near": leg}, vectors=vectors)
    assert {"knn": [0.5, 1.0]} in server.requests
    runs = load_dataset(tmp_path / "mine/dataset.yaml", every_query=True).runs
    assert runs["near"].to_dict()["q1"] == {"b": -1.0, "a": -2.0}


def test_hits_that_are_bare_ids_have_no_score(tmp_path: Path) -> None:
    leg = {**LEG, "hits": "/result/hits/0", "id": "", "score": None, "text": None}
    with serving(SearchServer(answer=lambda *_: found([["b", 7]]))) as server:
        pull(tmp_path, server.url, legs={"mine": leg})
    runs = load_dataset(tmp_path / "mine/dataset.yaml", every_query=True).runs
    assert runs["mine"].to_dict()["q1"] == {"b": 1.0, "7": 0.5}


HUGE = json.dumps({"result": {"hits": HITS}, "padding": "x" * 10_000_000}).encode()


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (found([{"id": "a", "score": "high"}]), "no finite number"),
        (Reply(b'{"result": {"hits": [{"id": "a", "score": NaN}]}}'), "not valid JSON"),
        (Reply(b'{"result": {"hits": [{"id": "a", "score": 1e999}]}}'), "no finite number"),
        (found([{"id": "a"}]), "score at '/score'"),
        (found([{"score": 1}]), "without an id"),
        (found({"a": 1}), "hits at"),
        (Reply(b"[]"), "list of hits"),
        (Reply(b'{"result": '), "not valid JSON"),
        (Reply(b'{"a": 1, "a": 2}'), "holds a key twice"),
        (Reply(b"<html>\x1b[31m"), "not valid JSON"),
        (Reply(b"[" * 100_000), "not valid JSON"),
        (Reply(HUGE), "longer than"),
        (Reply(b"", 302, {"Location": "http://127.0.0.1:1/"}), "not followed"),
        (Reply(b"", 404), "status 404: "),
        (Reply(b"x", 200, {"Content-Encoding": "br"}), "another encoding"),
    ],
)
def test_an_answer_that_breaks_a_rule_ends_the_pull(
    tmp_path: Path, reply: Reply, message: str
) -> None:
    with serving(answering(reply)) as server, pytest.raises(ProviderError, match=message) as caught:
        pull(tmp_path, server.url, concurrency=1)
    assert len(server.requests) == 1  # it is not asked again
    assert "mine, query 'q1'" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert not (tmp_path / "mine/dataset.yaml").exists()


def test_no_server_and_no_place_of_the_texts_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="server running"):
        pull(tmp_path, closed_port(), attempts=1)
    bare = {key: value for key, value in LEG.items() if key != "text"}
    with (
        serving(SearchServer()) as server,
        pytest.raises(ConfigError, match=r"fused\.text"),
    ):
        pull(tmp_path, server.url, texts=True, fused=bare)


def test_texts_need_a_place(tmp_path: Path) -> None:
    leg = {**LEG, "text": None}
    with (
        serving(SearchServer()) as server,
        pytest.raises(ConfigError, match=r"legs\.mine\.text"),
    ):
        pull(tmp_path, server.url, legs={"mine": leg}, texts=True)


def test_more_hits_than_asked_for_are_dropped_and_counted(tmp_path: Path) -> None:
    with serving(SearchServer()) as server:
        pulled = pull(tmp_path, server.url, depth=1)
    (record,) = pulled.record.lists
    assert (record.hits, record.surplus) == (2, 2)
    (note,) = pulled.notes
    assert note.startswith("mine sent 2 hits")


def test_servers_that_drip_or_ask_for_an_hour_are_cut_off(tmp_path: Path) -> None:
    drip = Reply(b" " * 10_000, drips=True)
    with (
        serving(answering(drip)) as server,
        pytest.raises(ProviderError, match=r"no answer within 0\.3 s"),
    ):
        pull(tmp_path, server.url, timeout=0.3, concurrency=1, attempts=1)
    reply = Reply(b"", 429, {"Retry-After": "3600"})
    with serving(answering(reply)) as server, pytest.raises(ProviderError, match="status 429"):
        pull(tmp_path, server.url, concurrency=1)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"", 429, {"Retry-After": "0"}),
        Reply(b"", 503),
        Reply(b"", 500, {"retry-after-ms": "1"}),
    ],
)
def test_what_may_pass_is_asked_again(tmp_path: Path, reply: Reply) -> None:
    with serving(answering(reply, found(HITS))) as server:
        pulled = pull(tmp_path, server.url, concurrency=1)
    assert pulled.record.lists[0].retries == 1
    assert len(server.requests) == 3


def test_the_key_comes_from_the_environment_and_is_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "sk-verysecretkey0123456789"  # noqa: S105 - of this test
    monkeypatch.setenv("MINE_API_KEY", secret)
    caplog.set_level("DEBUG")
    key = {"key": "MINE_API_KEY", "key_name": "X-Key", "key_prefix": ""}
    with serving(SearchServer(key=("X-Key", "other"))) as server:
        with pytest.raises(ProviderError, match="MINE_API_KEY") as caught:
            pull(tmp_path, server.url, **key)
        server.key = ("X-Key", secret)
        pull(tmp_path, server.url, **key)
    files = [path.read_bytes() for path in (tmp_path / "mine").rglob("*") if path.is_file()]
    assert not any(secret.encode() in data for data in files)
    assert secret not in str(caught.value)
    assert secret not in caplog.text
    with pytest.raises(ConfigError, match="not shown"):
        pull(tmp_path, server.url, key=secret)


def test_calls_at_once_are_limited(tmp_path: Path) -> None:
    text = "".join(f'{{"id": "q{n}", "text": "t{n}"}}\n' for n in range(12))
    with serving(SearchServer()) as server:
        pull(tmp_path, server.url, text=text, concurrency=3)
    assert len(server.requests) == 12
    assert server.most_at_once <= 3


def test_the_fingerprint_is_asked_for(tmp_path: Path) -> None:
    fingerprint = {"path": "/state", "value": "/state"}
    failing = Reply(b"", 400)
    with serving(answering(found(HITS), failing)) as server:
        with pytest.raises(ProviderError):
            pull(tmp_path, server.url, fingerprint=fingerprint, concurrency=1)
        server.state, server.answer = "2", lambda *_: found(HITS)
        with pytest.raises(ConfigError, match="the index changed"):
            pull(tmp_path, server.url, fingerprint=fingerprint, concurrency=1)
        server.state = "1"
        pulled = pull(tmp_path, server.url, fingerprint=fingerprint, concurrency=1)
    assert pulled.record.fingerprint == {"value": "1"}
    assert pulled.record.asked == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hits": "result/hits"}, "JSON pointer"),
        ({"path": "search"}, "a path begins with /"),
        ({"path": "/search?x=1"}, "see params"),
        ({"request": "DELETE"}, "request"),
        ({"fields": 1}, "unknown key 'fields'"),
    ],
)
def test_bad_requests(tmp_path: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        pull(tmp_path, "http://127.0.0.1:1", legs={"mine": {**LEG, **change}})


@pytest.mark.parametrize("url", ["ftp://host", "http://user:pw@host", "http://host/?key=1", "x"])
def test_bad_addresses(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="url") as caught:
        pull(tmp_path, url)
    assert "pw" not in str(caught.value)


#: The search that is under way when the pull is killed; those before it were answered.
LAST = 7
QUERIES_OF_KILLED = "".join(f'{{"id": "q{n}", "text": "t{n}"}}\n' for n in range(20))


def command(folder: Path, url: str) -> list[str]:
    legs = {"mine": {"path": "/search", "body": {"q": "QUERY"}, "hits": "/result/hits"}}
    config = folder / "pull.json.yaml"
    config.write_text(json.dumps({"url": url, "legs": legs, "concurrency": 1}), encoding="utf-8")
    queries = write_queries(folder, QUERIES_OF_KILLED)
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
