"""A key stands in no log, report, store, traceback or repr, in no form."""

import base64
import json
import logging
import os
import pickle
import subprocess
import sys
import traceback
import urllib.parse
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fusion_bench.errors import ProviderError
from fusion_bench.models.rerankers import providers
from fusion_bench.util.api_keys import ApiKey
from fusion_bench.util.http_client import JsonClient, retry_after
from tests.models.rerank.collection import make
from tests.models.rerank.server import Loopback, serving
from tests.models.rerank.test_clients import ask

KEY = "sk-QmFzZTY0+/Zx9:%secret=="


def forms(key: str) -> list[bytes]:
    """Every way a key has been seen to leak."""
    raw = key.encode()
    found = [raw, raw[::-1], raw.hex().encode(), urllib.parse.quote(key, safe="").encode()]
    found += [base64.b64encode(raw), base64.urlsafe_b64encode(raw), json.dumps(key).encode()]
    found += [base64.b64encode(b"user:" + raw)[8:-8], raw[:8], raw[-8:]]
    return found


def assert_clean(data: bytes, where: str) -> None:
    for form in forms(KEY):
        assert form not in data, f"{where} holds the key as {form!r}"


def everything(error: BaseException | None) -> str:
    """The traceback with every local variable of every frame, and of what came before it."""
    texts = []
    while error is not None:
        texts += [repr(error), str(error), repr(vars(error))]
        texts += traceback.format_exception(error)
        for frame, _ in traceback.walk_tb(error.__traceback__):
            texts += [repr(value) for value in frame.f_locals.values() if value != KEY]
        error = error.__context__
    return "\n".join(texts)


@pytest.mark.parametrize("how", ["429", "500", "close", "text", "403", "hang"])
def test_no_traceback_with_all_its_variables_holds_the_key(
    how: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RERANK_TEST_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    with serving(Loopback("cohere", key=KEY, fail=lambda _: how)) as state:
        options = {"base_url": state.url, "key": "RERANK_TEST_KEY", "timeout": 0.2}
        asked = providers.build({"method": "cohere", **options})
        with pytest.raises(ProviderError) as caught:
            ask(asked, "q", ["d"])
    assert_clean(everything(caught.value).encode(), "a traceback")
    assert_clean(caplog.text.encode(), "a log")
    assert_clean(repr(asked).encode() + asked.model_dump_json().encode(), "a configuration")


@pytest.mark.slow
def test_a_server_that_sends_the_key_back_is_not_repeated(tmp_path: Path) -> None:
    """A whole run at debug level, with an error and a model name that quote the key."""
    make(tmp_path)
    echo = Loopback("jina", key=KEY, model=f"model-{KEY}", fail={0: f"text {KEY}"}.get)
    with serving(echo):
        given = [
            "rerank", "--dataset", "tiny", "--system", "rrf", "--provider", "jina", "--store",
            "s.sqlite", "--set", f"base_url={echo.url}", "--set", "concurrency=1",
        ]  # fmt: skip
        code = (
            "import logging, sys; logging.basicConfig(level=logging.DEBUG);"
            "from fusion_bench.cli import main; sys.exit(main(sys.argv[1:]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *given],
            cwd=tmp_path,
            env={**os.environ, "JINA_API_KEY": KEY},
            capture_output=True,
            check=False,
        )
    assert done.returncode == 4, done.stderr.decode()
    assert echo.complaints == []
    assert b"(not shown: it resembles the API key)" in done.stdout + done.stderr
    assert_clean(done.stdout, "standard output")
    assert_clean(done.stderr, "standard error")
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"s.sqlite", "rrf-jina.jsonl", "rrf-jina.jsonl.meta.json"} <= {p.name for p in written}
    for path in written:
        assert_clean(path.read_bytes(), path.name)


def test_a_secret_shows_itself_to_nobody() -> None:
    secret = ApiKey(KEY, name="K")
    assert repr(secret) == str(secret) == f"{secret}" == "ApiKey(K)"
    assert secret.reveal_key() == KEY
    assert not hasattr(secret, "__dict__")
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(secret)
    remote = JsonClient("http://127.0.0.1:1", key=secret, timeout=1)
    assert_clean(repr(vars(remote)).encode(), "a client")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 7 "}, 7),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30),
        ({"retry-after": "Wed, 31 Dec 2025 23:00:00 GMT"}, 0),
        ({"retry-after": "-5"}, None),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, datetime(2026, 1, 1, tzinfo=UTC)) == seconds
