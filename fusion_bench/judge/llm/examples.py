"""Examples for the prompt, drawn from grades that people gave."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from fusion_bench.errors import ConfigError
from fusion_bench.io.dataset import Dataset
from fusion_bench.judge.files.people_grades import load_person
from fusion_bench.judge.llm.config import ExampleSettings
from fusion_bench.judge.llm.prompt import Example


@dataclass(frozen=True)
class ExamplePool:
    """Graded pairs of different queries, for each grade some more than are shown.

    No example of a query is shown where that query is judged: neither a pair nor its neighbors may
    tell the model the grade that agreement is later measured by.

    Attributes:
        per_grade: Examples of each grade in a prompt.
        pairs: Grade → query and document of each, in the order they are taken.
        texts: Query and document → the example.
    """

    per_grade: int = 0
    pairs: tuple[tuple[int, tuple[tuple[str, str], ...]], ...] = ()
    texts: Mapping[tuple[str, str], Example] | None = None

    def for_query(self, query: str) -> list[Example]:
        """The examples of a prompt, none of them of this query."""
        texts = self.texts or {}
        shown: list[Example] = []
        for _, pairs in self.pairs:
            others = [pair for pair in pairs if pair[0] != query]
            shown += [texts[pair] for pair in others[: self.per_grade]]
        return shown


def draw_examples(
    path: Path,
    dataset: Dataset,
    settings: ExampleSettings | None,
    grades: Collection[int],
    texts: tuple[Mapping[str, str], Mapping[str, str]],
) -> ExamplePool:
    """Draw examples of each grade.

    Args:
        path: The ``dataset.yaml``.
        dataset: The same, read.
        settings: What is drawn; None = nothing.
        grades: The grades of the scale.
        texts: Of queries and of documents, by id.

    Raises:
        ConfigError: The judge is a machine, or gave a grade beyond the scale; or no pair has texts.
        UnknownNameError: There is no such judge.
    """
    if settings is None:
        return ExamplePool()
    _require_people(dataset, settings.judge)
    queries, documents = texts
    given = [
        ((query, document), grade)
        for query, row in sorted(load_person(path, dataset, settings.judge).to_dict().items())
        for document, grade in sorted(row.items())
        if query in queries and document in documents
    ]
    beyond = {grade for _, grade in given} - set(grades)
    if beyond:
        raise ConfigError(
            f"examples: judge {settings.judge!r} gave grade {min(beyond)}, and the scale has "
            f"{', '.join(map(str, sorted(grades)))}: change 'scale', or give the judge a 'map'"
        )
    if not given:
        raise ConfigError(
            f"examples: no pair that judge {settings.judge!r} graded has the texts of its query "
            "and document: add them to 'queries' and 'documents' of dataset.yaml"
        )
    random.Random(settings.seed).shuffle(given)  # noqa: S311 - no secret
    pools = []
    for grade in sorted(grades):
        by_query = {pair[0]: pair for pair, other in reversed(given) if other == grade}
        ordered = [pair for pair, other in given if other == grade and by_query[pair[0]] == pair]
        pools.append((grade, tuple(ordered[: settings.per_grade + 1])))
    chosen = {pair: grade for grade, pairs in pools for pair in pairs}
    examples = {
        (query, document): Example(queries[query], documents[document], grade)
        for (query, document), grade in chosen.items()
    }
    return ExamplePool(settings.per_grade, tuple(pools), examples)


def _require_people(dataset: Dataset, name: str) -> None:
    judge = dataset.spec.judges.get(name)
    if judge is None and name == "qrels":
        qrels = dataset.spec.qrels
        kind = None if qrels is None else qrels.kind
    else:
        kind = None if judge is None else judge.kind  # an unknown one is refused when it is read
    if kind == "machine":
        raise ConfigError(
            f"examples: judge {name!r} is a machine: draw examples from people's grades, such as "
            "examples: {judge: people}"
        )
    if kind is None and name == "qrels":
        raise ConfigError(
            "examples: the dataset has no 'qrels': name a judge of dataset.yaml, such as "
            "examples: {judge: people}"
        )
