"""Scores by a language model (CONV-07-05, 5.2): the prompt, the answer, and what cannot be read."""

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from fusion_bench.errors import ConfigError
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.provenance import ListMeta, describe_unread
from fusion_bench.models.rerankers import providers
from fusion_bench.models.rerankers.chat import Chat, parse_scores
from tests.models.rerank.collection import YAML, make, read_written_meta
from tests.models.rerank.server import Loopback, serving
from tests.models.rerank.test_clients import ask

Capture = pytest.CaptureFixture[str]
LIST = Path("datasets/tiny/rerank/rrf-chat.jsonl")


def chat(**options: object) -> Chat:
    built = providers.build({"method": "chat", "model": "m", "key": None, **options})
    assert isinstance(built, Chat)
    return built


def command(state: Loopback, *options: str) -> list[str]:
    return [
        "rerank", "--dataset", "tiny", "--system", "rrf", "--provider", "chat", "--set", "model=m",
        "--set", "key=null", "--set", f"base_url={state.url}", "--store", "s.sqlite", *options,
    ]  # fmt: skip


def prompt_of(request: dict[str, Any]) -> str:
    return str(request["messages"][0]["content"])


# ── the answer


@pytest.mark.parametrize(
    ("content", "count", "scores", "unread"),
    [
        ("8,7,9,6,5", 5, (0.8, 0.7, 0.9, 0.6, 0.5), ()),
        # CONV-07-05 leaves 5 for a score that it cannot parse, ten times what the best one gets.
        ("10,high", 2, (1.0, 0.5), (1,)),
        ("8,3", 4, (0.8, 0.3, 0.5, 0.5), (2, 3)),
        ("8,3,9,1", 2, (0.8, 0.3), ()),
        ("8,high,nan", 3, (0.8, 0.5, 0.5), (1, 2)),
        ("", 2, (0.5, 0.5), (0, 1)),
        ("I cannot rate these.", 2, (0.5, 0.5), (0, 1)),
        ("12,-3,inf", 3, (1.0, 0.0, 0.5), (2,)),
        ("8,7,9.", 3, (0.8, 0.7, 0.9), ()),
        ("7.5, 0.5", 2, (0.75, 0.05), ()),
        # a scale or a remark
        ("8/10, 3/10", 2, (0.8, 0.3), ()),
        ("8 / 10\n3 out of 10", 2, (0.8, 0.3), ()),
        ("8/5, 3", 2, (0.8, 0.3), ()),
        ("8 (very relevant), 3 (hardly, see 2)", 2, (0.8, 0.3), ()),
        ("8 - very relevant\n3: hardly", 2, (0.8, 0.3), ()),
        ("8-9, 3", 2, (0.8, 0.3), ()),
        # numbered, or one a line
        ("1. 8\n2. 3", 2, (0.8, 0.3), ()),
        ("[1] 8\n[2] 3", 2, (0.8, 0.3), ()),
        ("[1]: 8/10\n[2]: 3/10 (hardly)", 2, (0.8, 0.3), ()),
        ("1: 8, 2: 3", 2, (0.8, 0.3), ()),
        ("8\n3\n", 2, (0.8, 0.3), ()),
        ("- 8\n- 3", 2, (0.8, 0.3), ()),
        ("[3] 1\n[1] 8", 3, (0.8, 0.5, 0.1), (1,)),
        ("[0] 8\n[9] 3", 2, (0.5, 0.5), (0, 1)),
        # decoration
        ("Scores: 8,3", 2, (0.8, 0.3), ()),
        ("Here are the 2 scores:\n8,3\n\nThe first one answers it.", 2, (0.8, 0.3), ()),
        ("```\n8,3\n```", 2, (0.8, 0.3), ()),
        ("[8, 3]", 2, (0.8, 0.3), ()),
        ("**8**, **3**", 2, (0.8, 0.3), ()),
        # what parseFloat of JavaScript reads
        ("8 very relevant, 7 relevant, 9, 6", 4, (0.8, 0.7, 0.9, 0.6), ()),
        ("8 points, 7pts, 9/5, .5", 4, (0.8, 0.7, 0.9, 0.05), ()),
        # other separators
        ("8;7;9;6", 4, (0.8, 0.7, 0.9, 0.6), ()),
        ("8 7 9 6", 4, (0.8, 0.7, 0.9, 0.6), ()),
        ("8\u30017\u30019\uff0c6", 4, (0.8, 0.7, 0.9, 0.6), ()),
        ('{"scores":[8,7,9,6]}', 4, (0.8, 0.7, 0.9, 0.6), ()),
        ('{\n "scores": [\n  8,\n  7\n ]\n}', 2, (0.8, 0.7), ()),
        ('{"1": 8, "2": 7}', 2, (0.8, 0.7), ()),
        # no document gets the score of another one
        ("<think>the 3, 4</think>\n8,7,9,6", 4, (0.8, 0.7, 0.9, 0.6), ()),
        ("so 3, 4\n</think>8,7", 2, (0.8, 0.7), ()),
        ("<think>the 3, 4", 2, (0.5, 0.5), (0, 1)),
        ("Sure, here are my ratings\n8\n7\n9", 3, (0.8, 0.7, 0.9), ()),
        ("3 of 4 are good\n8\n7\n9\n6", 4, (0.8, 0.7, 0.9, 0.6), ()),
        ("3, 4 maybe\n8,7,9", 3, (0.8, 0.7, 0.9), ()),
        ("8\nN/A\n9", 3, (0.8, 0.5, 0.9), (1,)),
        ("My scores\n8\nN/A\n9", 3, (0.5, 0.5, 0.5), (0, 1, 2)),
        ("1,2\n8,3", 2, (0.5, 0.5), (0, 1)),
        ("1. The first is good\n2. No", 2, (0.5, 0.5), (0, 1)),
        ('[{"document": 1, "score": 8}, {"document": 2, "score": 7}]', 2, (0.5, 0.5), (0, 1)),
        ('{"document": 1, "score": 8},\n{"document": 2, "score": 7}', 2, (0.5, 0.5), (0, 1)),
        ("8, n/a, 9, 6, 5", 4, (0.8, 0.5, 0.9, 0.6), (1,)),
    ],
)
def test_answers(
    content: str, count: int, scores: tuple[float, ...], unread: tuple[int, ...]
) -> None:
    assert parse_scores(content, count) == (scores, unread)


# ── the prompt


def test_documents_are_numbered_and_cut_at_500_characters() -> None:
    with serving(Loopback("chat")) as state:
        asked = chat(base_url=state.url)
        ask(asked, "q", ["x" * 501, "y" * 500, "short"])
    (request,) = state.requests
    text = prompt_of(request)
    assert f"[1] {'x' * 500}...\n\n[2] {'y' * 500}\n\n[3] short\n" in text
    assert "3 numbers between commas" in text
    assert (request["temperature"], request["max_tokens"]) == (0, 100)
    assert asked.batch == 10
    assert "500 characters" in asked.model_identity.truncation


def test_the_limit_of_tokens_grows_with_a_batch_of_more_than_ten() -> None:
    limits = {batch: chat(batch=batch).answer_limit for batch in (1, 10, 11, 50)}
    assert limits == {1: 100, 10: 100, 11: 110, 50: 500}
    assert chat(batch=50, answer_tokens=150).answer_limit == 150
    with pytest.raises(ConfigError, match=r"answer_tokens 100 .* 150"):
        chat(batch=50, answer_tokens=100)


def test_a_prompt_of_the_users(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text("{{\nFrage: {query}\n{documents}\nJe Dokument eine Zahl.", encoding="utf-8")
    with serving(Loopback("chat", say=lambda n: "\n".join("3" * n))) as state:
        state.asked = lambda body: ("q", ["a"] * prompt_of(body).count("["))  # type: ignore[method-assign]
        reply, _ = ask(chat(base_url=state.url, prompt=path), "wie {x}?", ["a", "b {documents}"])
    assert prompt_of(state.requests[0]).startswith(
        "{\nFrage: wie {x}?\n[1] a\n\n[2] b {documents}\n"
    )
    assert reply.scores == (0.3, 0.3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{query} {document}", "{document}"),
        ("{query.__class__} {documents}", "{query.__class__}"),
        ("{query!r} {documents}", "{query!r}"),
        ("{query:>9} {documents}", "{query:>9}"),
        ("{} {documents}", "{} is no field"),
        ("{query}", "lacks {documents}"),
        ("", "lacks {query}"),
        ('{query} {documents} {"score": 1}', "is no field"),
        ("{query} {documents} }", "Single '}'"),
    ],
)
def test_what_is_no_prompt(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        chat(prompt=path)
    message = str(caught.value)
    assert problem in message
    assert str(path) in message
    assert "{{ and }}" in message
    assert "\n" not in message


def test_a_prompt_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("für {query} {documents}".encode("latin-1"))
    for name in ("absent.txt", "latin.txt", "."):
        with pytest.raises(ConfigError, match="cannot be read"):
            chat(prompt=tmp_path / name)


def test_everything_that_changes_scores_is_part_of_the_identity(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text("{query} {documents}", encoding="utf-8")
    other = tmp_path / "same.txt"
    other.write_text("{query} {documents}", encoding="utf-8")
    options: list[dict[str, object]] = [
        {}, {"prompt": path}, {"batch": 5}, {"temperature": 0.5}, {"answer_tokens": 90},
        {"characters": 100},
    ]  # fmt: skip
    identities = [chat(**given).model_identity for given in options]
    assert len(set(identities)) == len(options)
    assert chat(prompt=other).model_identity == identities[1]
    assert chat(answer_tokens=100).model_identity == identities[0]


def test_scores_of_another_prompt_are_not_used(root: Path, capsys: Capture) -> None:
    path = root / "p.txt"
    text = "Query: {query}\n\nDocuments:\n{documents}\n\nAnswer"
    path.write_text(text, encoding="utf-8")
    given = ["--set", "prompt=p.txt", "--json"]
    with serving(Loopback("chat")) as state:
        assert main(command(state, *given)) == 0
        first = len(state.requests)
        assert main(command(state, *given)) == 0
        assert len(state.requests) == first
        path.write_text(f"{text} please", encoding="utf-8")
        assert main(command(state, *given)) == 0
        assert len(state.requests) == 2 * first
    prompts = [
        json.loads(line)["settings"]["identities"][0]["prompt"]
        for line in capsys.readouterr().out.splitlines()
    ]
    assert prompts[0] == prompts[1] != prompts[2]


# ── what cannot be read


def test_a_useless_list_is_degraded(root: Path, capsys: Capture) -> None:
    with serving(Loopback("chat", say=lambda _: "I cannot rate these.")) as state:
        assert main(command(state)) == 4
        asked = len(state.requests)
        out = capsys.readouterr().out
        assert main(command(state)) == 4  # the stored scores are not better
        assert len(state.requests) == asked
    meta = read_written_meta(root / LIST)
    rows = [json.loads(line) for line in (root / LIST).read_text(encoding="utf-8").splitlines()]
    assert {row["score"] for row in rows} == {0.5}
    assert meta.unread_count == len(rows)
    assert set(meta.degraded) == set(meta.unread) == {row["query"] for row in rows}
    assert meta.unscored == ()
    assert f"degraded: {len(rows)} of {len(rows)} scores" in out
    assert "change the prompt" in out
    assert "same command again" not in out
    reason = load_dataset(root / YAML).degradation("rrf-chat") or ""
    assert f"{len(rows)} scores of" in reason


def test_a_few_unread_scores_are_named_and_degrade_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    make(tmp_path, queries=3)  # 36 scores
    monkeypatch.chdir(tmp_path)
    answers = iter(["1,2,3,4,5,6,7,8,9,high", *(",".join("4" * 10) for _ in range(5))])
    state = Loopback("chat", say=lambda n: ",".join(next(answers).split(",")[:n]))
    given = ["--set", "concurrency=1", "--set", "batch=10"]
    with serving(state):
        assert main(command(state, *given)) == 0
        out = capsys.readouterr().out
        again = command(state, *given, "--out", "again.jsonl", "--split", "test")
        assert main([*again[:-2], "--json"]) == 0  # another list of the same stored scores
    told = json.loads(capsys.readouterr().out)
    meta = read_written_meta(tmp_path / LIST)
    assert meta.degraded == {}
    (named,) = meta.unread.items()
    assert named[1] == (10,)
    assert meta.ledger["unread"] == {named[0]: [10]}
    assert meta.ledger["filled"] == 1
    assert told["unread"] == {named[0]: [10]}
    assert "1 of 36 scores" in out
    assert f"{named[0]}: 10" in out
    assert "degraded" not in out


def test_unread_places_are_shortened_and_told_from_a_fallback() -> None:
    places = {f"q{i}": (1, 2) for i in range(7)}
    assert describe_unread(places, limit=2).startswith("q0: 1, 2; q1: 1, 2; 5 more ")
    assert describe_unread({"q": (3,)}) == "q: 3"
    meta = ListMeta(
        list_sha256="", created="", dataset="d", system="s", depth=1, score_space="unit",
        asked="a/m", providers={"a/m": ("q1",), "b/m": ("q2",), "fused order": ("q3",)},
        degraded={"q1": "1 of 1", "q2": "server", "q3": "timeout"}, unread={"q1": (1,), "q2": (1,)},
    )  # fmt: skip
    assert meta.unscored == ("q2", "q3")
