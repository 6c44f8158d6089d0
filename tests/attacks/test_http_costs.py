"""``--max-cost`` holds whatever a server bills."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.attacks.hostile_server import Request, respond, serve_answers
from tests.attacks.http_answers import rows
from tests.attacks.runner import run_here
from tests.models.rerank.collection import make

LIMIT = 2.5
#: What stands in ``meta`` of an answer of Cohere's, and the calls at 1 each that the limit allows.
BILLS: dict[str, tuple[object, int]] = {
    "no bill": (None, 2),
    "an empty bill": ({"billed_units": {}}, 2),
    "no units": ({"billed_units": {"search_units": 0}}, 2),
    "negative units": ({"billed_units": {"search_units": -5}}, 2),
    "tiny units": ({"billed_units": {"search_units": 1e-9}}, 2),
    "half a unit": ({"billed_units": {"search_units": 0.5}}, 2),
    "units in quotes": ({"billed_units": {"search_units": "1"}}, 2),
    "units true": ({"billed_units": {"search_units": True}}, 2),
    "two units": ({"billed_units": {"search_units": 2}}, 1),
    "absurd units": ({"billed_units": {"search_units": 10**12}}, 1),
    "refused units": ({"billed_units": {"search_units": 10**13}}, 2),
    "units of 400 digits": ({"billed_units": {"search_units": 10**400}}, 2),
}


def command(url: str, *options: str) -> tuple[str, ...]:
    return (
        "rerank", "--dataset", "tiny", "--system", "rrf", "--provider", "cohere",
        "--set", f"base_url={url}", "--set", "price.per_1000_searches=1000",
        "--set", "concurrency=1", "--set", "key=null", "--max-cost", str(LIMIT),
        "--store", "s.sqlite", *options,
    )  # fmt: skip


@pytest.mark.parametrize(("bill", "calls"), BILLS.values(), ids=BILLS)
def test_a_run_stops_before_the_limit(bill: object, calls: int, tmp_path: Path) -> None:
    make(tmp_path, queries=6)
    meta = f', "meta": {json.dumps(bill)}'

    def answer(request: Request) -> Iterable[bytes]:
        return respond(f'{{"results": [{rows(request)}]{meta}}}'.encode())

    with serve_answers(answer) as server:
        first = run_here(command(server.url), tmp_path)
        assert len(server.requests) == calls
        again = run_here(command(server.url), tmp_path)
        assert len(server.requests) == calls  # what was spent is remembered
    for outcome in (first, again):
        assert outcome.code == 2
        assert outcome.err.count("raise --max-cost") == 1, outcome.err
        assert "Traceback" not in outcome.err


def test_answers_that_are_paid_and_useless_count(tmp_path: Path) -> None:
    """A server that bills answers which nobody can read, and broken connections."""
    make(tmp_path, queries=6)
    answers = iter(
        [[b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"], respond(b"{}"), respond(b"x")]
    )
    with serve_answers(lambda _: next(answers, respond(b"y"))) as server:
        outcome = run_here(command(server.url), tmp_path)
    assert outcome.code == 2
    assert "raise --max-cost" in outcome.err
    assert len(server.requests) == 2


def test_halves_of_a_batch_are_paid_one_by_one(tmp_path: Path) -> None:
    """A server may refuse large requests, which is free, and bill each small one."""
    make(tmp_path, queries=6)

    def answer(request: Request) -> Iterable[bytes]:
        if len(request.body["documents"]) > 3:
            return respond(b"{}", status="413 Too large")
        return respond(f'{{"results": [{rows(request)}]}}'.encode())

    with serve_answers(answer) as server:
        outcome = run_here(command(server.url), tmp_path)
    assert outcome.code == 2
    sizes = [len(request.body["documents"]) for request in server.requests]
    assert sum(size <= 3 for size in sizes) == 2, sizes


def test_calls_that_are_refused_cost_nothing(tmp_path: Path) -> None:
    make(tmp_path, queries=6)

    def answer(request: Request) -> Iterable[bytes]:
        if len(server.requests) < 5:
            return respond(b"{}", "Retry-After: 0", status="429 Wait")
        return respond(f'{{"results": [{rows(request)}]}}'.encode())

    with serve_answers(answer) as server:
        outcome = run_here(command(server.url), tmp_path)
    assert outcome.code == 2
    assert "2.0000 spent" in outcome.err
    assert len(server.requests) == 4 + 2
