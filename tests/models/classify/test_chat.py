"""The classifier that asks a language model, against a real server on this machine."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.errors import ConfigError, CostLimitError, ProviderError
from fusion_bench.models.answer_stores import ScoreStore
from fusion_bench.models.chat_classifier import ChatClassifier, ChatClassifierClient, parse_answer
from fusion_bench.models.endpoints import RetryRules
from fusion_bench.models.rerank_config import RerankSettings
from fusion_bench.models.rerankers import Price
from tests.models.rerank.server import ChatServer, Json, closed_port, serving

Capture = pytest.CaptureFixture[str]
RETRY = RetryRules(attempts=3, wait_initial=0.0, wait_jitter=0.0, failure_kinds=("server",))
SETTINGS = RerankSettings(retry=RETRY)
GOOD = {"type": "global", "confidence": 0.9, "entities": ["X"], "expanded_queries": ["other"]}


@dataclass
class ClassifyingServer(ChatServer):
    """Answers a question about the type of a query with what ``reply`` makes of it."""

    reply: Callable[[str], object] = lambda _: GOOD
    asked_queries: list[str] = field(default_factory=list)

    def asked(self, body: Json) -> tuple[str, list[str]]:
        return body["messages"][0]["content"].rpartition("Query: ")[2], []

    def write_content(self, prompt: str) -> object:
        query = prompt.rpartition("Query: ")[2]
        self.asked_queries.append(query)
        return self.reply(query)


@pytest.fixture
def server() -> Iterator[ClassifyingServer]:
    with serving(ClassifyingServer()) as state:
        assert isinstance(state, ClassifyingServer)
        yield state


def make_client(server: ClassifyingServer, **changes: object) -> ChatClassifierClient:
    given = {"model": "m", "base_url": server.url, "key": None, **changes}
    return ChatClassifierClient.model_validate(given)


def test_an_answer_of_the_model_is_the_classification_and_an_unsure_one_hybrid(
    server: ClassifyingServer,
) -> None:
    [answer] = ChatClassifier(make_client(server), settings=SETTINGS).classify(["what is X?"])
    found = answer.classification
    assert (found.type, found.confidence, answer.failure) == ("global", 0.9, "")
    assert (found.extracted_entities, found.expanded_queries) == (("X",), ("other",))
    assert found.suggested_weights.graph == 0.5
    [body] = server.requests
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("m", 0.0, 400)
    server.reply = lambda _: {**GOOD, "confidence": 0.6}
    [answer] = ChatClassifier(make_client(server), settings=SETTINGS).classify(["x"])
    assert (answer.classification.type, answer.classification.confidence) == ("hybrid", 0.6)
    assert answer.classification.suggested_weights.graph == 0.33


def test_a_stored_answer_is_not_asked_again(server: ClassifyingServer, tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    first = ChatClassifier(make_client(server), ScoreStore(path), SETTINGS)
    answers = first.classify(["a", "b", "a"])
    assert sorted(server.asked_queries) == ["a", "b"]
    assert answers[0] == answers[2]
    again = ChatClassifier(make_client(server), ScoreStore(path), SETTINGS)
    assert again.classify(["b", "c", "a"])[2] == answers[0]
    assert sorted(server.asked_queries) == ["a", "b", "c"]
    warmer = ChatClassifier(make_client(server, temperature=1), ScoreStore(path), SETTINGS)
    warmer.classify(["a"])
    assert server.asked_queries.count("a") == 2
    assert (again.ledger["calls"], again.ledger["tokens"]) == (4, 400)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("no idea", "malformed: malformed answer: no JSON object in 'no idea'"),
        ({"type": "locale", "confidence": 1}, "malformed: malformed answer: type: "),
        ({"type": "local"}, "malformed: malformed answer: confidence: Field required"),
        ({"type": "local", "confidence": 1.5}, "malformed: malformed answer: confidence: "),
        ("", "malformed: "),
    ],
)
def test_a_query_without_an_answer_is_hybrid(
    server: ClassifyingServer, reply: object, says: str
) -> None:
    server.reply = lambda query: reply if query == "bad" else GOOD
    bad, good = ChatClassifier(make_client(server), settings=SETTINGS).classify(["bad", "good"])
    assert bad.failure.startswith(says)
    assert (bad.classification.type, bad.classification.confidence) == ("hybrid", 0.0)
    assert good.classification.type == "global"


def test_what_stands_around_the_object_is_ignored() -> None:
    content = f"Sure!\n```json\n{json.dumps({**GOOD, 'why': 'because'})}\n```"
    answer = parse_answer({"choices": [{"message": {"content": content}}]})
    assert (answer.type, answer.entities) == ("global", ("X",))
    unread: list[Json] = [{}, {"choices": []}, {"choices": [{"message": {"content": None}}]}]
    for data in [*unread, [], None]:
        with pytest.raises(ProviderError, match="holds no message"):
            parse_answer(data)


def test_a_refusal_ends_the_run(server: ClassifyingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.key = "right"
    monkeypatch.setenv("SOME_KEY", "wrong-and-secret")
    client = make_client(server).model_copy(update={"key": "SOME_KEY"})
    with pytest.raises(ProviderError, match=r"status 401: .* SOME_KEY") as caught:
        ChatClassifier(client, settings=SETTINGS).classify(["x"])
    assert "secret" not in str(caught.value)
    monkeypatch.delenv("SOME_KEY")
    with pytest.raises(ConfigError, match="SOME_KEY"):
        ChatClassifier(client, settings=SETTINGS).classify(["x"])


def test_the_price_is_limited(server: ClassifyingServer) -> None:
    price = Price(per_million_tokens=1000, per_million_output_tokens=1000)
    client = make_client(server, price=price, concurrency=1)
    classifier = ChatClassifier(client, settings=SETTINGS, max_cost=0.5)
    with pytest.raises(CostLimitError):
        classifier.classify([f"q{n}" for n in range(9)])
    assert 0 < classifier.ledger["cost"] <= 0.5
    assert len(server.asked_queries) < 9


def test_without_a_text_or_a_server_there_is_no_answer(server: ClassifyingServer) -> None:
    [answer] = ChatClassifier(make_client(server), settings=SETTINGS).classify([" "])
    assert ("no text" in answer.failure, server.requests) == (True, [])
    client = ChatClassifierClient(model="m", base_url=closed_port(), key=None)
    [answer] = ChatClassifier(client, settings=SETTINGS).classify(["x"])
    assert answer.failure.startswith("connection: ")


def test_the_command_asks_and_names_what_failed(
    server: ClassifyingServer, tmp_path: Path, capsys: Capture
) -> None:
    server.reply = lambda query: "?" if query == "two" else GOOD
    queries, out = tmp_path / "queries.jsonl", tmp_path / "predicted.jsonl"
    lines = [{"id": "a", "text": "one", "type": "global"}, {"id": "b", "text": "two"}]
    queries.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    arguments = ["dataset", "classify", str(queries), "--out", str(out), "--method", "chat"]
    arguments += ["--store", str(tmp_path / "s.sqlite"), "--set", "key=null", "--set", "model=m"]
    assert main([*arguments, "--set", f"base_url={server.url}", "--json"]) == 4
    record = json.loads(capsys.readouterr().out)
    assert record["predictions"]["failures"]["b"].startswith("malformed: ")
    assert record["predictions"]["agreement"] == 1.0
    assert record["ledger"]["calls"] == 1
    assert [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] == [
        {**lines[0], "predicted_type": "global", "predicted_confidence": 0.9},
        {**lines[1], "predicted_type": "hybrid", "predicted_confidence": 0.0},
    ]
    assert main([*arguments, "--set", f"base_url={server.url}", "--max-cost", "1"]) == 2
    assert "price of chat/m" in capsys.readouterr().err
