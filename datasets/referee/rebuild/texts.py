"""The rule books and questions as they are written under ``games/``, checked.

Every file is one game: chunks of its rule book, a small knowledge graph, and questions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

#: Of an intent list, the one that decides which sources are asked.
SWITCHING = ("meta", "synergy")
#: Share of the games of each language in the dev split; the others are the test split.
DEV_SHARE = 0.28
#: Changing it draws other splits; it belongs to the dataset's version.
SALT = "fusion-bench/referee/1"


@dataclass(frozen=True)
class Chunk:
    """A document: one section of a rule book."""

    id: str
    game: str
    language: str
    kind: str
    title: str
    text: str
    entities: tuple[str, ...]

    @property
    def indexed(self) -> str:
        """What the retrievers index."""
        return f"{self.title}. {self.text}"


@dataclass(frozen=True)
class Question:
    """A query: what a player asks about one game.

    Attributes:
        written_for: Chunks that the writer had in mind; never a judgment.
        hyde: A hypothetical passage that answers it, by somebody who has not seen the book.
    """

    id: str
    game: str
    language: str
    text: str
    type: str
    confidence: float
    intents: tuple[str, ...]
    entities: tuple[str, ...]
    written_for: tuple[str, ...]
    hyde: str
    split: str

    @property
    def intent(self) -> str:
        """The one intent of the query: meta or synergy where the question has it."""
        return next((name for name in SWITCHING if name in self.intents), self.intents[0])


@dataclass(frozen=True)
class Game:
    """One game: its chunks, its questions and its graph."""

    id: str
    name: str
    language: str
    chunks: tuple[Chunk, ...]
    questions: tuple[Question, ...]
    entities: dict[str, tuple[str, ...]]
    relations: tuple[tuple[str, str, str], ...]


def read_games(folder: Path) -> list[Game]:
    """All games by id.

    Args:
        folder: Holds ``games/*.yaml`` and ``hyde.jsonl``.

    Raises:
        SystemExit: A question without a passage, or an id that is there twice.
    """
    lines = (folder / "hyde.jsonl").read_text(encoding="utf-8").splitlines()
    passages = {row["id"]: row["hyde"] for row in map(json.loads, lines)}
    paths = sorted((folder / "games").glob("*.yaml"))
    raw = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths]
    dev = choose_dev({data["id"]: data["language"] for data in raw})
    games = [_read_game(data, passages, "dev" if data["id"] in dev else "test") for data in raw]
    ids = [chunk.id for game in games for chunk in game.chunks]
    ids += [question.id for game in games for question in game.questions]
    repeated = {name for name in ids if ids.count(name) > 1}
    if repeated:
        raise SystemExit(f"ids that are there twice: {', '.join(sorted(repeated))}")
    return games


def choose_dev(languages: dict[str, str]) -> set[str]:
    """The games of the dev split: of each language the same share, by a hash of the id."""
    chosen: set[str] = set()
    for language in sorted(set(languages.values())):
        games = [name for name, spoken in languages.items() if spoken == language]
        games.sort(key=lambda name: hashlib.sha256(f"{SALT}:{name}".encode()).hexdigest())
        chosen.update(games[: round(DEV_SHARE * len(games))])
    return chosen


def _read_game(data: dict[str, Any], passages: dict[str, str], split: str) -> Game:
    name, language = data["id"], data["language"]
    missing = [row["id"] for row in data["questions"] if not passages.get(row["id"])]
    if missing:
        raise SystemExit(f"hyde.jsonl has no passage for {', '.join(missing)}")
    return Game(
        name,
        data["name"],
        language,
        tuple(_read_chunk(row, name, language) for row in data["chunks"]),
        tuple(_read_question(row, name, language, passages, split) for row in data["questions"]),
        {row["name"]: tuple(map(str, row.get("aliases") or ())) for row in data["entities"]},
        tuple((str(one), str(verb), str(other)) for one, verb, other in data["relations"]),
    )


def _read_chunk(row: dict[str, Any], game: str, language: str) -> Chunk:
    text = " ".join(row["text"].split())
    entities = tuple(row["entities"])
    return Chunk(row["id"], game, language, row["kind"], str(row["title"]), text, entities)


def _read_question(
    row: dict[str, Any], game: str, language: str, passages: dict[str, str], split: str
) -> Question:
    return Question(
        row["id"],
        game,
        language,
        " ".join(row["text"].split()),
        row["type"],
        float(row["confidence"]),
        tuple(row["intents"]),
        tuple(row["entities"]),
        tuple(row["written_for"]),
        " ".join(passages[row["id"]].split()),
        split,
    )


def document_lines(games: list[Game]) -> Iterator[str]:
    """``documents.jsonl``: what is searched, and what a reader needs to judge it."""
    for chunk in (chunk for game in games for chunk in game.chunks):
        yield json.dumps(
            {"id": chunk.id, "title": chunk.title, "text": chunk.text}, ensure_ascii=False
        )


def query_lines(games: list[Game]) -> Iterator[str]:
    """``queries.jsonl``: groups and splits go by game."""
    for question in (question for game in games for question in game.questions):
        yield json.dumps(
            {
                "id": question.id,
                "text": question.text,
                "type": question.type,
                "confidence": question.confidence,
                "intent": question.intent,
                "group": question.game,
                "split": question.split,
                "language": question.language,
                "hyde": question.hyde,
            },
            ensure_ascii=False,
        )
