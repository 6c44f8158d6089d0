"""A dataset with texts, people's grades beside it, and a model on loopback that grades it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.models.rerank.server import Json, Loopback, Shape

SHAPE = Shape(
    "/chat/completions",
    frozenset({"model", "messages"}),
    frozenset({"temperature", "max_tokens", "max_completion_tokens"}),
    results="choices",
)
BLOCKS = re.compile(r"<(?:query|passage)-(\w+)>\n(.*?)\n</(?:query|passage)-\1>", re.DOTALL)
PRICE = "price: {per_million_tokens: 1000, per_million_output_tokens: 1000}"


def grade_of(_query: str, passage: str) -> object:
    """The number at the end of the passage, as people see it, and at most 3."""
    return {"grade": min(3, int(passage.rsplit(" ", 1)[1]))}


@dataclass
class JudgingServer(Loopback):
    """Answers with what ``reply`` makes of query and passage; a dictionary becomes JSON."""

    reply: Callable[[str, str], object] = grade_of
    prompts: list[str] = field(default_factory=list)
    choice: Json = field(default_factory=dict)

    @property
    def shape(self) -> Shape:
        return SHAPE

    def asked(self, body: Json) -> tuple[str, list[str]]:
        *_, query, passage = BLOCKS.findall(body["messages"][0]["content"])
        return query[1], [passage[1]]

    def answer(self, body: Json) -> Json:
        query, [passage] = self.asked(body)
        with self.lock:
            self.prompts.append(body["messages"][0]["content"])
        said = self.reply(query, passage)
        content = said if isinstance(said, str) else json.dumps(said)
        message = {"role": "assistant", "content": content}
        return {
            "model": self.model,
            "choices": [{"message": message, **self.choice}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }


def make(root: Path, *, queries: int = 4, more: str = "") -> Path:
    """Write the dataset below ``root`` and return its folder.

    Query q of n has documents q-0 … q-3, whose texts end in their grades; list ``a`` returns the
    first three, and people graded the last three.
    """
    folder = root / "datasets" / "mine"
    folder.mkdir(parents=True)
    run, people, texts, asked = [], ["query,document,grade\n"], [], []
    for q in range(queries):
        asked.append(json.dumps({"id": f"q{q}", "text": f"question {q}"}))
        for d in range(4):
            texts.append(json.dumps({"id": f"q{q}-{d}", "text": f"passage {q} {d} {(q + d) % 4}"}))
            run += [f"q{q} Q0 q{q}-{d} 0 {9 - d} a\n"] * (d < 3)
            people += [f"q{q},q{q}-{d},{(q + d) % 4}\n"] * (d > 0)
    files = {
        "dataset.yaml": "name: mine\nqueries: queries.jsonl\ndocuments: corpus.jsonl\n"
        f"runs: {{a: {{path: a.trec}}}}\n{more}"
        "judges: {people: {path: people.csv, kind: human}}\n",
        "queries.jsonl": "\n".join(asked),
        "corpus.jsonl": "\n".join(texts),
        "a.trec": "".join(run),
        "people.csv": "".join(people),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def write_config(root: Path, server: Loopback, rest: str = "", model: str = PRICE) -> Path:
    """``judge.yaml`` with one judge ``m`` behind the server."""
    path = root / "judge.yaml"
    path.write_text(
        f"judges:\n  m: {{model: tiny, family: Llama, base_url: '{server.url}', key: null, "
        f"{model}}}\nsettings: {{retry: {{attempts: 1}}}}\n{rest}",
        encoding="utf-8",
    )
    return path
