"""The page on the live pipeline runs as it is written: its first example, and its HTTP service."""

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from tests.models.rerank.server import Loopback, closed_port, plain_score, serving
from tests.models.rerank.standing_clock import StandingClock

PAGE = Path(__file__).parents[3] / "docs/reference/pipeline.md"
FIRST, APP, PROFILES = re.findall(
    r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
)
QUERIES = 200
TUNED = """\
dataset: mine
baseline: live tuned
systems:
  live tuned:
    runs: [bm25, dense]
    fusion: {method: rrf, weights: {question: 2}}
    blend: {method: linear, reranker: ltr, beta: 1.0, tail: drop}
"""
DATASET = """\
name: mine
qrels: qrels.txt
runs:
  bm25: {path: bm25.trec, roles: [keyword]}
  dense: {path: dense.trec, roles: [question, semantic]}
rerank:
  ltr: {path: ltr.trec, score_space: unit}
"""
RERANK = """\
providers:
  main: {{method: jina, base_url: "{url}", key: null}}
chain: [main]
settings:
  timeout_ms: {milliseconds}
  breaker: {{open_seconds: 3600}}
  deadline: {{rerank_ms: {milliseconds}, total_ms: 600000}}
"""


def write_project(url: str, milliseconds: int = 600_000) -> None:
    for name, text in {
        "tuned.yaml": TUNED,
        "datasets/mine/dataset.yaml": DATASET,
        "rerank.yaml": RERANK.format(url=url, milliseconds=milliseconds),
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")


@contextmanager
def service() -> Iterator[str]:
    names: dict[str, Any] = {}
    exec(compile(APP, str(PAGE), "exec"), names)  # noqa: S102 - our own page
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(names["app"], log_level="error"))
        work = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        work.start()
        try:
            while not server.started and work.is_alive():
                time.sleep(0.005)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/search"
        finally:
            server.should_exit = True
            work.join()


def lists_of(number: int) -> dict[str, Any]:
    documents = [f"{number}-{i}" for i in range(6)]
    return {
        "bm25": [(name, 9.0 - i, f"text {name}") for i, name in enumerate(documents[:4])],
        "dense": [(name, 0.9 - i / 10, f"text {name}") for i, name in enumerate(documents[2:])],
    }


async def post(url: str, body: object) -> tuple[int, Any]:
    """Status and JSON of an answer; two hundred of httpx's requests would take seconds."""
    host, port = url.split("/")[2].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data = json.dumps(body).encode()
    head = f"POST /search HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + data)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    first, _, rest = answer.partition(b"\r\n\r\n")
    return int(first.split()[1]), json.loads(rest)


def ask_all(url: str, count: int = QUERIES) -> list[dict[str, Any]]:
    async def go() -> list[tuple[int, Any]]:
        calls = (post(url, {"query": f"q{n}", "lists": lists_of(n)}) for n in range(count))
        return await asyncio.gather(*calls)

    answers = asyncio.run(go())
    assert {status for status, _ in answers} == {200}
    return [body for _, body in answers]


def ids_of(answer: dict[str, Any]) -> list[str]:
    return [document["id"] for document in answer["documents"]]


def fused_order(number: int) -> list[str]:
    return [f"{number}-{i}" for i in (2, 3, 4, 5, 0, 1)]


@pytest.fixture(autouse=True)
def clock() -> None:
    """The server's own waits need a clock that goes."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_200_queries_at_once_are_reranked_each_by_its_own_scores() -> None:
    with serving(Loopback("jina")) as state:
        write_project(state.url)
        with service() as url:
            answers = ask_all(url)
    assert {answer["provider"] for answer in answers} == {"jina/resolved-model"}
    for number, answer in enumerate(answers):
        texts = [f"text {name}" for name in fused_order(number)]
        scores = dict(zip(fused_order(number), plain_score(f"q{number}", texts), strict=True))
        assert ids_of(answer) == sorted(scores, key=lambda name: -scores[name])
        assert answer["documents"][0]["sources"][0]["weight"] in {1.0, 2.0}
    assert len(state.requests) == QUERIES
    assert state.most_at_once <= 8  # concurrency of the provider


@pytest.mark.parametrize("how", ["hangs", "gone"])
def test_200_queries_at_once_while_the_provider_is_dead(how: str) -> None:
    with serving(Loopback("jina", fail=lambda _: "hang")) as state:
        write_project(state.url if how == "hangs" else closed_port(), milliseconds=150)
        with service() as url:
            answers = ask_all(url)
            again = ask_all(url, 20)
    for number, answer in enumerate(answers):
        assert ids_of(answer) == fused_order(number)
        assert answer["provider"] == "fused order"
    kinds = {kind for answer in answers for _, kind in answer["failures"]}
    assert kinds <= {"timeout", "rate_limit", "breaker"} | (
        {"connection"} if how == "gone" else set()
    )
    # Five failures open the breaker: nobody asks again, and nobody waits.
    assert {kind for answer in again for _, kind in answer["failures"]} == {"breaker"}
    assert len(state.requests) <= 16


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"query": "q"}, "the body has to"),
        ({"query": "q", "lists": {"bm25": []}}, "no list 'dense'"),
        ({"query": 7, "lists": lists_of(1)}, "query: text"),
        ([], "the body has to"),
    ],
)
def test_a_wrong_request_is_answered_with_the_reason(body: Any, problem: str) -> None:  # noqa: ANN401
    write_project(closed_port())
    names: dict[str, Any] = {}
    exec(compile(APP, str(PAGE), "exec"), names)  # noqa: S102 - our own page

    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(names["app"])
        async with (
            names["pipeline"],
            httpx.AsyncClient(transport=transport, base_url="http://test") as web,
        ):
            return await web.post("/search", content=json.dumps(body))

    answer = asyncio.run(go())
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(problem)


def test_the_first_example_and_the_profiles_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    StandingClock(monkeypatch)
    with serving(Loopback("tei")) as state:
        write_project(closed_port())
        names: dict[str, Any] = {}
        with monkeypatch.context() as patched:
            patched.chdir(PAGE.parents[2])
            exec(FIRST.replace("http://127.0.0.1:8080", state.url), names)  # noqa: S102
    assert names["result"].provider == "tei/resolved-model@abc"
    assert len(capsys.readouterr().out.splitlines()) == 3
    monkeypatch.setenv("JINA_API_KEY", "sk-0123456789")
    Path("application.yml").write_text("nablarch: {rag: {rerank: {default-top-k: 5}}}")
    exec(PROFILES, names)  # noqa: S102
    assert names["pipeline"].system.dialect == "conv-07-05"
