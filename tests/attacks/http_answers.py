"""Answers of a hostile server to a request for the scores of documents, and how each must end."""

import gzip
import itertools
import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fusion_bench.errors import FailureKind
from tests.attacks.hostile_server import Request, respond

MEGABYTE = 2**20


@dataclass(frozen=True)
class HostileAnswer:
    """One answer.

    Attributes:
        name: What a report of the tests calls it.
        pieces: Its bytes.
        kind: The failure that it is; None = its scores are taken.
        says: What the error must hold.
    """

    name: str
    pieces: Callable[[Request], Iterable[bytes]]
    kind: FailureKind | None
    says: str = ""

    def __str__(self) -> str:
        return self.name


def rows(request: Request, score: str = "0.5") -> str:
    return ", ".join(
        f'{{"index": {i}, "relevance_score": {score}}}'
        for i in range(len(request.body["documents"]))
    )


def scores(score: str = "0.5", more: str = "") -> Callable[[Request], Iterator[bytes]]:
    """Good results but for their score, and what else the object holds."""

    def answer(request: Request) -> Iterator[bytes]:
        return respond(f'{{"results": [{rows(request, score)}]{more}}}'.encode())

    return answer


def tokens(count: str) -> Callable[[Request], Iterator[bytes]]:
    """Good results, and a bill."""
    return scores(more=f', "usage": {{"total_tokens": {count}}}')


def text(body: bytes | str, *headers: str, status: str = "200 OK") -> Callable[[Request], Any]:
    data = body.encode() if isinstance(body, str) else body
    return lambda _: respond(data, *headers, status=status)


def endless_body(_: Request) -> Iterator[bytes]:
    return respond(itertools.repeat(b" " * 2**16))


def endless_gzip(_: Request) -> Iterator[bytes]:
    """1.5 GB of blanks in 1.5 MB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = packer.compress(b" " * MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    head = gzip.compress(b"")[:10]
    return respond(itertools.chain([head], itertools.repeat(block, 1500)), "Content-Encoding: gzip")


def dripping_body(_: Request) -> Iterator[bytes]:
    def drip() -> Iterator[bytes]:
        while True:
            time.sleep(0.02)
            yield b" "

    return respond(drip())


def dripping_headers(_: Request) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in itertools.count():
        time.sleep(0.02)
        yield b"X-%d: x\r\n" % number


def endless_headers(_: Request) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in itertools.count():
        yield b"X-%d: %s\r\n" % (number, b"x" * 1000)


def endless_interim_answers(_: Request) -> Iterator[bytes]:
    return itertools.repeat(b"HTTP/1.1 102 Processing\r\n\r\n" * 1000)


def packed(request: Request) -> Iterator[bytes]:
    body = gzip.compress(f'{{"results": [{rows(request)}]}}'.encode())
    return respond(body, "Content-Encoding: gzip")


def cut_off(request: Request) -> Iterator[bytes]:
    body = gzip.compress(f'{{"results": [{rows(request)}]}}'.encode())[:-10]
    return respond(body, "Content-Encoding: gzip")


def missing_row(_: Request) -> Iterator[bytes]:
    row = '{"index": 0, "relevance_score": 1}'
    return respond(f'{{"results": [{row}]}}'.encode())


DIGITS = "9" * 400
LIMITS = [
    HostileAnswer("a body without end", endless_body, "malformed", "longer than"),
    HostileAnswer("1.5 GB of blanks in gzip", endless_gzip, "malformed", "longer than"),
    HostileAnswer("a gzip body", packed, None),
    HostileAnswer("a gzip body that is cut off", cut_off, "malformed", "cut off"),
    HostileAnswer("no gzip", text("{}", "Content-Encoding: gzip"), "malformed", "damaged"),
    HostileAnswer("another encoding", text("{}", "Content-Encoding: br"), "malformed", "gzip"),
    HostileAnswer("two encodings", text("{}", "Content-Encoding: gzip, gzip"), "malformed"),
    HostileAnswer("headers without end", endless_headers, "connection"),
    HostileAnswer("a redirect", text("", "Location: /else", status="307 No"), "refused", "307"),
    HostileAnswer("cookies", scores(), None),
    HostileAnswer("too few rows", missing_row, "malformed", "index 1 is missing"),
]
#: These end by the limit of the time alone.
DRIPS = [
    HostileAnswer("a body, byte by byte", dripping_body, "timeout"),
    HostileAnswer("headers, line by line", dripping_headers, "timeout"),
    HostileAnswer("interim answers without end", endless_interim_answers, "timeout"),
]
JSON = [
    HostileAnswer("score of 400 digits", scores(DIGITS), "malformed", "30 digits"),
    HostileAnswer("score of -400 digits", scores(f"-{DIGITS}"), "malformed", "30 digits"),
    HostileAnswer("score 1e999", scores("1e999"), "malformed", "no finite number"),
    HostileAnswer("score NaN", scores("NaN"), "malformed", "NaN"),
    HostileAnswer("score -Infinity", scores("-Infinity"), "malformed", "Infinity"),
    HostileAnswer("score true", scores("true"), "malformed"),
    HostileAnswer("score in quotes", scores('"0.5"'), "malformed"),
    HostileAnswer("score null", scores("null"), "malformed"),
    HostileAnswer("score 5 of unit", scores("5"), "malformed", "outside the score space"),
    HostileAnswer("score of 1_0", scores("1_0"), "malformed", "not JSON"),
    HostileAnswer("a key twice", scores('0.1, "relevance_score": 0.9'), "malformed", "twice"),
    HostileAnswer("100,000 brackets", text("[" * 100_000), "malformed", "too deep"),
    HostileAnswer("100,000 objects", text('{"a":' * 100_000), "malformed", "too deep"),
    HostileAnswer("not UTF-8", text(b'{"results": "\xff"}'), "malformed", "UTF-8"),
    HostileAnswer("UTF-16", text('{"results": []}'.encode("utf-16")), "malformed"),
    HostileAnswer("nothing", text(""), "malformed"),
    HostileAnswer("units of 400 digits", tokens(DIGITS), "malformed", "30 digits"),
    HostileAnswer("units of 1e300", tokens("1e300"), "malformed", "above"),
    HostileAnswer("units of 1e999", tokens("1e999"), "malformed", "above"),
    HostileAnswer("units true", tokens("true"), None),
    HostileAnswer("half a surrogate", scores(more=', "model": "m-\\ud800"'), None),
    HostileAnswer("a model of 1 MB", scores(more=f', "model": "{"m" * MEGABYTE}"'), None),
    HostileAnswer("a model of controls", scores(more=', "model": "\\u001b[2J\\u202e\\n"'), None),
]  # fmt: skip
WAITS = [
    "Fri, 31 Dec 2030 23:59:59 +99999999999999999999",
    "Fri, 31 Dec 20302030203020302030 23:59:59 GMT",
    "Fri, 31 Dec 9999 23:59:59 -2359",
    "9" * 400,
    "\u00b2",
    "-1",
    "nan",
]
CHARSETS = ["hex", "zlib", "rot13", "idna", "undefined", "unicode_escape", "\u00ff", "utf-7"]
ERROR_PAGES = [
    *(
        HostileAnswer(
            f"charset {charset!a}",
            text("x\\", f"Content-Type: text/html; charset={charset}", status="500 Oops"),
            "server",
        )
        for charset in CHARSETS
    ),
    *(
        HostileAnswer(
            f"Retry-After {wait[:40]!a}",
            text("{}", f"Retry-After: {wait}", status="429 Wait"),
            "rate_limit",
        )
        for wait in WAITS
    ),
    HostileAnswer(
        "an error page without end",
        lambda _: respond(itertools.repeat(b"<p>" * 20_000), status="500 Oops"),
        "server",
    ),
    HostileAnswer(
        "an error page of gzip blanks",
        lambda request: itertools.chain(
            [next(respond([], "Content-Encoding: gzip", status="503 Oops"))],
            itertools.islice(endless_gzip(request), 1, None),
        ),
        "server",
    ),
    HostileAnswer("a status line of noise", lambda _: [b"\x00\xff garbage\r\n\r\n"], "connection"),
    HostileAnswer("a length of noise", text("", "Content-Length: 9x"), "connection"),
    HostileAnswer("nothing at all", lambda _: [], "connection"),
]
ANSWERS = [*LIMITS, *JSON, *ERROR_PAGES]


def plain_json(value: object) -> Iterator[bytes]:
    return respond(json.dumps(value).encode())
