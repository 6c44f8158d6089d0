"""A server that cannot say which model it runs: another provider is asked, within the limits."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.attacks.attack import Outcome
from tests.attacks.hostile_server import Request, respond, serve_answers
from tests.attacks.http_answers import dripping_body, text
from tests.attacks.runner import run_here
from tests.models.rerank.collection import make, read_written_meta
from tests.models.rerank.server import Loopback, closed_port, serving

LIST = "datasets/tiny/rerank/rrf-tei.jsonl"
#: What a server answers to each request.
ANSWERS: dict[str, Callable[[Request], Iterable[bytes]]] = {
    "an error": text("{}", status="500 Oops"),
    "nothing": dripping_body,
    "no JSON": text("<html>"),
    "wait": text("{}", "Retry-After: 9", status="429 Wait"),
}


def rerank(root: Path, url: str, config: str, *options: str) -> Outcome:
    (root / "c.yaml").write_text(config, encoding="utf-8")
    words = ("rerank", "--dataset", "tiny", "--system", "rrf", "--provider", "tei")
    where = ("--set", f"base_url={url}", "--config", "c.yaml", "--store", "s.sqlite")
    return run_here((*words, *where, *options), root)


def spare(url: str) -> str:
    return f"providers:\n  spare: {{method: jina, key: null, base_url: '{url}'}}\n"


@pytest.mark.parametrize("answer", [*ANSWERS.values(), None], ids=[*ANSWERS, "no server"])
def test_the_next_provider_is_asked(
    answer: Callable[[Request], Iterable[bytes]] | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    make(tmp_path)
    with serving(Loopback("jina")) as state, serve_answers(answer or (lambda _: [])) as server:
        url = closed_port() if answer is None else server.url
        seconds = 0.2 if answer is dripping_body else 60
        options = ("--fallback", "spare", "--set", f"timeout={seconds}")
        outcome = rerank(tmp_path, url, spare(state.url), *options)
    assert outcome.code == 4, outcome
    first = "not connected, so another provider is asked: http://127.0.0.1:"
    assert [message.startswith(first) for message in caplog.messages].count(True) == 1
    meta = read_written_meta(tmp_path / LIST)
    assert len(meta.providers["jina/resolved-model"]) == 4
    assert all(reason.endswith("after tei: breaker") for reason in meta.degraded.values())
    assert len(meta.degraded) == 4
    # The breaker is open from the start; and the limit may pass before the request is sent.
    most = 0 if answer is None else 1
    least = 0 if answer is dripping_body else most
    assert least <= len(server.requests) <= most


def test_a_fallback_that_is_down_does_not_end_a_run(tmp_path: Path) -> None:
    make(tmp_path)
    config = f"providers:\n  spare: {{method: tei, base_url: '{closed_port()}'}}\n"
    with serving(Loopback("tei")) as state:
        outcome = rerank(tmp_path, state.url, config, "--fallback", "spare")
    assert outcome.code == 0, outcome


LIMITS = ["{timeout_ms: 100}", "{deadline: {rerank_ms: 100}}", "{deadline: {total_ms: 100}}"]


@pytest.mark.parametrize("settings", LIMITS)
def test_the_limits_of_a_call_hold_before_the_first_one(settings: str, tmp_path: Path) -> None:
    make(tmp_path)
    with serve_answers(dripping_body) as server:
        outcome = rerank(tmp_path, server.url, f"settings: {settings}\n")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "within 100 ms" in outcome.err
    assert len(server.requests) <= 1  # the limit may pass before it is sent


def test_a_refused_key_is_an_error_whatever_else_is_there(tmp_path: Path) -> None:
    make(tmp_path)
    refusal = text(json.dumps({"error": "no"}), status="401 No")
    with serving(Loopback("jina")) as state, serve_answers(refusal) as server:
        outcome = rerank(tmp_path, server.url, spare(state.url), "--fallback", "spare")
        assert outcome.code == 2
        assert "/info: status 401" in outcome.err
        lenient = f"{spare(state.url)}settings: {{strict: false}}\n"
        assert rerank(tmp_path, server.url, lenient, "--fallback", "spare").code == 4


def test_a_server_that_comes_back_is_connected(tmp_path: Path) -> None:
    make(tmp_path, queries=6)
    answers = iter([respond(b"{}", status="500 Oops")])
    requests: list[str] = []

    def answer(request: Request) -> Iterable[bytes]:
        requests.append(request.path)
        late = {"model_id": "late"}
        if request.path == "/info":
            return next(answers, respond(json.dumps(late).encode()))
        rows = [{"index": i, "score": 0.5} for i in range(len(request.body["texts"]))]
        return respond(json.dumps(rows).encode())

    with serving(Loopback("jina")) as state, serve_answers(answer) as server:
        breaker = "settings: {breaker: {open_seconds: 0.000001}}\n"
        outcome = rerank(tmp_path, server.url, spare(state.url) + breaker, "--fallback", "spare")
    assert outcome.code in {0, 4}, outcome
    assert len(read_written_meta(tmp_path / LIST).providers["tei/late"]) >= 3
    assert requests.count("/info") == 2
