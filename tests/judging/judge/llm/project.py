"""A dataset with texts, people's grades beside it, and a model on loopback that grades it."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.models.rerank.server import ChatServer, Json, Loopback

BLOCKS = re.compile(r"<(?:query|passage)-(\w+)>\n(.*?)\n</(?:query|passage)-\1>", re.DOTALL)
PRICE = "price: {per_million_tokens: 1000, per_million_output_tokens: 1000}"


def grade_of(_query: str, passage: str) -> object:
    """The number at the end of the passage, as people see it, and at most 3."""
    return {"grade": min(3, int(passage.rsplit(" ", 1)[1]))}


@dataclass
class JudgingServer(ChatServer):
    """Answers with what ``reply`` makes of query and passage; a dictionary becomes JSON."""

    reply: Callable[[str, str], object] = grade_of
    prompts: list[str] = field(default_factory=list)

    def asked(self, body: Json) -> tuple[str, list[str]]:
        *_, query, passage = BLOCKS.findall(body["messages"][0]["content"])
        return query[1], [passage[1]]

    def write_content(self, prompt: str) -> object:
        *_, query, passage = BLOCKS.findall(prompt)
        with self.lock:
            self.prompts.append(prompt)
        return self.reply(query[1], passage[1])


def add_judge(config: Path, server: Loopback, name: str, model: str) -> None:
    text = config.read_text(encoding="utf-8")
    more = f"  {name}: {{model: other, base_url: '{server.url}', key: null, {model}}}\n"
    config.write_text(text.replace("settings:", f"{more}settings:"), encoding="utf-8")


def drop_judges(folder: Path) -> None:
    path = folder / "dataset.yaml"
    path.write_text(path.read_text(encoding="utf-8").split("judges:")[0], encoding="utf-8")


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
