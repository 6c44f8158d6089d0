"""A judge's task on two queries of three documents, and keys that a test presses."""

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console, RenderableType

from fusion_bench.judging.judge_files import JudgeFile
from fusion_bench.judging.judge_work import JudgeTask
from fusion_bench.judging.options import OrderName
from fusion_bench.judging.pools import PooledDocument
from fusion_bench.judging.terminal import JudgeLoop, JudgingSession

QUERIES = {"q1": "what is rank fusion", "q2": "who judges"}
TEXTS = {f"d{n}": f"Title {n}\n\nText of document {n}." for n in range(1, 4)}


def make_task(root: Path, order: OrderName | None = "pool", **known: int) -> JudgeTask:
    """``known`` = grades of the dataset's own for documents of q1."""
    groups = [
        [PooledDocument(query, f"d{n}", (n, 4 - n)) for n in range(1, 4)] for query in QUERIES
    ]
    return JudgeTask(
        file=JudgeFile(root / "judgments/ann.csv", "ann"),
        greatest=3,
        rel=1,
        groups=groups,
        order=order,
        seed=0,
        known={("q1", document): grade for document, grade in known.items()},
    )


class Presser:
    """Keys in order, and what was on the screen before each."""

    def __init__(self, keys: Iterable[str], console: Console) -> None:
        self._keys = iter(keys)
        self._console = console
        self.frames: list[str] = []

    def update(self, *renderables: RenderableType) -> None:
        with self._console.capture() as capture:
            self._console.print(*renderables)
        self.frames.append(capture.get())

    def read_key(self) -> str:
        return next(self._keys, "end")


def press(task: JudgeTask, keys: Iterable[str], width: int = 120, height: int = 20) -> list[str]:
    """Judge with these keys; what was on the screen before each of them."""
    console = Console(width=width, height=height, force_terminal=False, highlight=False)
    presser = Presser(keys, console)
    JudgeLoop(JudgingSession(task), QUERIES, TEXTS, console, presser, presser).run()
    return presser.frames


def stored(task: JudgeTask) -> dict[str, tuple[int, str]]:
    """By query and document: grade and note, as the file has them."""
    judgments = JudgeFile(task.file.path, "ann").judgments
    return {"/".join(pair): (each.grade, each.note) for pair, each in judgments.items()}
