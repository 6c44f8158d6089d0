"""Servers of every protocol that a client speaks, and which echo the key anywhere in an answer."""

import base64
import copy
import functools
import gzip
import json
import logging
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from fusion_bench.util.api_keys import KEPT_PIECE
from tests.attacks.runner import read_files, run_here
from tests.engines.connectors.cases import CASES, QUERY
from tests.engines.connectors.loopback import DOCUMENTS, FakeEngine, Json, serving
from tests.judging.judge.llm import project as judging
from tests.models.rerank import collection as reranking
from tests.models.retrieve import collection as retrieving
from tests.models.retrieve.server import word_vector

VARIABLE: Final = "HOSTILE_API_KEY"
#: Characters of a key in a row that nothing may show.
PIECE: Final = 8
#: Keys and positions that lead into an answer; ``NAME`` at the end = the name of a field.
Place: TypeAlias = tuple[str | int, ...]
NAME: Final = "the name of the field"

#: How a key, or a piece of it, may be written.
FORMS: Final[Mapping[str, Callable[[str], str]]] = {
    "plain": str,
    "reversed": lambda key: key[::-1],
    "in capitals": str.upper,
    "percent": lambda key: "".join(f"%{ord(c):02X}" for c in key),
    "hexadecimal": lambda key: key.encode().hex(),
    "hexadecimal bytes": lambda key: key.encode().hex(" "),
    "octal": lambda key: " ".join(f"{ord(c):o}" for c in key),
    "octal of three": lambda key: " ".join(f"{ord(c):03o}" for c in key),
    "octal of six": lambda key: ",".join(f"{ord(c):06o}" for c in key),
    "octal with a prefix": lambda key: " ".join(f"0o{ord(c):o}" for c in key),
    "octal in a row": lambda key: "".join(f"{ord(c):03o}" for c in key),
    "octal escapes": lambda key: "".join(f"\\{ord(c):o}" for c in key),
    "decimal": lambda key: " ".join(f"{ord(c)}" for c in key),
    "base32": lambda key: base64.b32encode(key.encode()).decode(),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of a header": lambda key: base64.b64encode(f"Bearer {key}".encode()).decode(),
    "base85": lambda key: base64.b85encode(key.encode()).decode(),
    "Ascii85": lambda key: base64.a85encode(key.encode()).decode(),
    "entities": lambda key: "".join(f"&#{ord(c)};" for c in key),
    "escapes": lambda key: "".join(f"\\u{ord(c):04x}" for c in key),
    "spaced": " ".join,
}


@dataclass(frozen=True)
class Client:
    """A command that asks a server.

    Attributes:
        engine: Makes the server, which answers as it should.
        prepare: Writes the files of the command below a folder, for a server at a URL.
        words: The command, without the URL of the server.
        place: Writes that URL as an option; empty = ``prepare`` wrote it.
    """

    engine: Callable[[], FakeEngine]
    prepare: Callable[[Path, str], object]
    words: tuple[str, ...]
    place: str = ""


class ModelServer(FakeEngine):
    """Rerankers, embeddings and chat endpoints of all kinds, by the path."""

    def answer(self, path: str, body: Json) -> Json:
        if path == "/info":
            return {"model_id": "m", "model_sha": "1f"}
        if path == "/embed":
            return [word_vector(text) for text in body["inputs"]]
        if path == "/v1/embeddings":
            rows = [
                {"index": i, "embedding": word_vector(text), "object": "embedding"}
                for i, text in enumerate(body["input"])
            ]
            return {"data": rows, "model": "m", "usage": {"total_tokens": 9}}
        if path.endswith("/chat/completions"):
            content = write_message(body["messages"][0]["content"])
            choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
            return {"id": "c1", "model": "m", "choices": [choice], "usage": usage}
        texts = next(body[key] for key in ("texts", "input", "documents") if key in body)
        rows = [{"index": i, "relevance_score": 0.5, "score": 0.5} for i in range(len(texts))]
        if "texts" in body:
            return rows
        billed = {"billed_units": {"search_units": 1}, "api_version": {"version": "2"}}
        return {"id": "r1", "model": "m", "results": rows, "data": rows, "meta": billed}


def write_message(prompt: str) -> str:
    """What a model may write that is asked for grades, types, queries or passages."""
    if "expanded_queries" in prompt:
        names = {"entities": ["Storm"], "expanded_queries": ["a storm"]}
        return json.dumps({"type": "local", "confidence": 0.9, **names})
    if '"grade"' in prompt:
        return json.dumps({"grade": 1, "reason": "it is about storms"})
    if '"query"' in prompt:
        return json.dumps({"query": "warning before a storm"})
    return "8, 7, 6, 5, 4, 3, 2, 1, 1, 1" if "10" in prompt else "A passage about storms."


class Service(FakeEngine):
    """A service of no known kind."""

    def answer(self, path: str, body: Json) -> Json:
        if path == "/state" or not body["q"]:
            return {"state": "7"}
        hits = [{"id": name, "score": 9 - i, "text": t} for i, (name, (t, _)) in _numbered()]
        return {"took": 1, "hits": hits}


def _numbered() -> Iterator[tuple[int, tuple[str, tuple[str, tuple[float, float]]]]]:
    return enumerate(DOCUMENTS.items())


def _write_pull(settings: Mapping[str, Json]) -> Callable[[Path, str], None]:
    """Writes the configuration of a pull, its query and the query's vectors."""
    vectors: dict[str, Json] = {"dense": {"vector": QUERY.vectors["dense"]}}
    vectors["words"] = {"indices": [0, 1], "values": [1.0, 1.0]}

    def prepare(root: Path, url: str) -> None:
        for name, vector in vectors.items():
            (root / f"{name}.jsonl").write_text(json.dumps({"id": "q1", **vector}) + "\n")
        legs = {name: dict(leg) for name, leg in settings["legs"].items()}
        for name, leg in legs.items():
            needs_vector = (
                name == "dense" or leg.get("sparse") or leg.get("search") == "sparse_vector"
            )
            if needs_vector:
                leg["vectors"] = str(root / f"{name}.jsonl")
        given = {**settings, "url": url, "key": VARIABLE, "attempts": 1, "wait": 0, "legs": legs}
        (root / "pull.yaml").write_text(json.dumps(given))
        (root / "asked.jsonl").write_text(json.dumps({"id": "q1", "text": QUERY.text}) + "\n")

    return prepare


def _pull(name: str, engine: Callable[[], FakeEngine], settings: Mapping[str, Json]) -> Client:
    files = ("--config", "pull.yaml", "--queries", "asked.jsonl", "--out", "mine")
    depth = str(settings.get("window", 5))
    words = ("pull", name, *files, "--depth", depth, "--texts")
    return Client(engine, _write_pull(settings), words)


def _rerank(provider: str) -> Client:
    words = ("rerank", "--dataset", "tiny", "--system", "rrf", "--provider", provider)
    options = ("--set", f"key={VARIABLE}", "--set", "model=m", "--store", "s.sqlite")
    return Client(ModelServer, lambda root, _: reranking.make(root), (*words, *options), "--set")


def _write_judge(root: Path, url: str) -> None:
    judging.make(root, queries=1)
    config = f"judges: {{m: {{model: tiny, base_url: '{url}', key: {VARIABLE}, price: {{}}}}}}\n"
    (root / "judge.yaml").write_text(f"{config}settings: {{retry: {{attempts: 1}}}}\n")


def _retrieve(kind: str, *options: str) -> Client:
    words = ("retrieve", kind, "--dataset", "sea", *options)
    return Client(ModelServer, lambda root, _: retrieving.make(root), words, "--set")


def _write_queries(root: Path, _: str) -> None:
    (root / "queries.jsonl").write_text('{"id": "q1", "text": "why do storms come"}\n')
    text = (
        "Sailors watch the sky because a change of wind is the first sign of a storm at sea. " * 3
    )
    (root / "documents.jsonl").write_text(json.dumps({"id": "d1", "text": text}) + "\n")


_SERVICE: Final = {
    "legs": {"words": {"path": "/find", "body": {"q": "QUERY"}, "hits": "/hits", "text": "/text"}},
    "fingerprint": {"path": "/state", "value": ""},
}
_KEY_AND_MODEL: Final = ("--set", f"key={VARIABLE}", "--set", "model=m")
PROVIDERS: Final = (
    *("jina", "cohere", "cohere_v1", "voyage", "mixedbread", "infinity", "vllm", "tei", "chat"),
)
CLIENTS: Final[Mapping[str, Client]] = {
    **{f"pull {name}": _pull(name, case.engine, case.settings) for name, case in CASES.items()},
    "pull http": _pull("http", Service, _SERVICE),
    **{f"rerank {name}": _rerank(name) for name in PROVIDERS},
    "judge": Client(ModelServer, _write_judge, ("judge", "mine", "--llm-config", "judge.yaml")),
    "classify": Client(
        ModelServer,
        _write_queries,
        (
            "dataset",
            "classify",
            "queries.jsonl",
            "--out",
            "p.jsonl",
            "--method",
            "chat",
            *_KEY_AND_MODEL,
        ),
        "--set",
    ),
    "retrieve dense openai": _retrieve("dense", "--encoder", "openai", *_KEY_AND_MODEL),
    "retrieve dense tei": _retrieve("dense", "--encoder", "tei", "--set", f"key={VARIABLE}"),
}


def ask_server(client: Client, root: Path, key: str, change: Callable[[str, Json], Json]) -> str:
    """All that a command leaves behind: what it prints and logs, and the files that it writes.

    Args:
        client: The command.
        root: An empty folder.
        key: The key that it sends.
        change: Path and answer → the answer that is sent.
    """
    engine, records = client.engine(), _Records()
    plain = engine.answer
    is_basic = engine.prefix == "Basic "
    engine.key = base64.b64encode(key.encode()).decode() if is_basic else key
    engine.answer = lambda path, body: change(path, plain(path, body))  # type: ignore[method-assign]
    with serving(engine), records:
        client.prepare(root, engine.url)
        before = read_files(root)
        version = "/v1" if "openai" in client.words else ""
        where = (client.place, f"base_url={engine.url}{version}") if client.place else ()
        outcome = run_here((*client.words, *where), root, {VARIABLE: key})
    assert engine.requests or len(key) < KEPT_PIECE, outcome  # a key too short is never sent
    assert "Traceback" not in outcome.err, outcome
    files = [
        gzip.decompress(data) if name.endswith(".gz") else data
        for name, data in read_files(root).items()
        if before.get(name) != data
    ]
    written = [data.decode(errors="replace") for data in files]
    return "\n".join((str(outcome.code), outcome.out, outcome.err, *records.texts, *written))


class _Records(logging.Handler):
    """Everything that is logged while it is entered, as text."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))

    def __enter__(self) -> None:
        root = logging.getLogger()
        self._level = root.level
        root.setLevel(logging.DEBUG)
        root.addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)
        logging.getLogger().setLevel(self._level)


def list_places(answer: Json, place: Place = ()) -> Iterator[Place]:
    """Where an echo may stand in an answer: each value that holds no other, the name of each field.

    Of a list of numbers, or of rows alike, the first stands for all.
    """
    if isinstance(answer, dict):
        for name, value in answer.items():
            yield (*place, name, NAME)
            yield from list_places(value, (*place, name))
    elif isinstance(answer, list) and answer:
        yield from list_places(answer[0], (*place, 0))
    else:
        yield place


def plant(answer: Json, place: Place, echo: Json) -> Json:
    """The answer with an echo at a place; as it is where there is no such place."""
    if not place:
        return echo
    planted = copy.deepcopy(answer)
    *parents, last = place[:-1] if place[-1] == NAME else place
    try:
        holder = functools.reduce(operator.getitem, parents, planted)
        holder[last]
        if place[-1] == NAME:
            holder[str(echo)] = holder.pop(last)
        else:
            holder[last] = echo
    except (KeyError, IndexError, TypeError):
        return answer
    return planted


def assert_hidden(shown: str, key: str, echo: str) -> None:
    """Neither eight characters of the key are shown, either way round, nor the echo of them."""
    plain = shown.lower()
    letters = "".join(filter(str.isalnum, plain))
    for text in (key, key[::-1]):
        for start in range(len(text) - PIECE + 1):
            piece = text[start : start + PIECE].lower()
            assert piece not in plain, (piece, shown)
            bare = "".join(filter(str.isalnum, piece))
            assert len(bare) < PIECE or bare not in letters, (piece, shown)
    # Its ends may be common words, such as "&#115;".
    core = echo[len(echo) // 4 : 3 * len(echo) // 4]
    assert core not in shown.replace('\\"', '"').replace("\\\\", "\\"), (core, shown)
