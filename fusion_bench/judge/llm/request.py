"""The pairs that a model grades, with their texts."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion_bench.errors import DataError
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_paths import documents_of
from fusion_bench.judge.files.people_grades import load_people
from fusion_bench.judge.llm.config import LlmJudgeConfig
from fusion_bench.judge.llm.examples import ExamplePool, draw_examples
from fusion_bench.judge.llm.prompt import JudgePrompt

Pair = tuple[str, str]


@dataclass(frozen=True)
class GradingRequest:
    """What is graded.

    Attributes:
        dataset: Name of the dataset.
        folder: Its folder.
        pairs: Query and document of each pair.
        queries: Query id → text.
        documents: Document id → text.
        prompt: Rubric, scale and length.
        examples: Shown in the prompts.
    """

    dataset: str
    folder: Path
    pairs: tuple[Pair, ...]
    queries: Mapping[str, str]
    documents: Mapping[str, str]
    prompt: JudgePrompt
    examples: ExamplePool

    def fill_prompt(self, pair: Pair) -> str:
        """The prompt for one pair."""
        query, document = pair
        shown = self.examples.for_query(query)
        return self.prompt.fill(self.queries[query], self.documents[document], shown)


def prepare_grading(
    path: Path, dataset: Dataset, pairs: Sequence[Pair], config: LlmJudgeConfig, folder: Path
) -> GradingRequest:
    """Read the texts of the pairs, and draw the examples.

    Args:
        path: The ``dataset.yaml``.
        dataset: The same, read.
        pairs: What is graded.
        config: What ``judge.yaml`` says.
        folder: Where that file lies.

    Raises:
        ConfigError: The dataset names no documents, or the configuration breaks a rule.
        DataError: There is no pair, or a query or document has no text.
    """
    if not pairs:
        raise DataError(f"{dataset.name}: no document to grade: raise --depth")
    queries = {name: query.text for name, query in dataset.queries.items() if query.text}
    documents = {name: document.text for name, document in documents_of(path).items()}
    for query, document in pairs:
        if query not in queries:
            raise DataError(
                f"{dataset.name}: query {query!r} has no 'text': give it one in the queries file "
                "('queries' of dataset.yaml)"
            )
        if document not in documents:
            raise DataError(
                f"{dataset.name}: document {document!r}, in the pool of query {query!r}, has no "
                "text in 'documents' of dataset.yaml"
            )
    prompt = config.make_prompt(folder)
    texts = (queries, documents)
    examples = draw_examples(path, dataset, config.examples, prompt.grades, texts)
    return GradingRequest(
        dataset.name, path.parent, tuple(pairs), queries, documents, prompt, examples
    )


def add_double_judged(
    path: Path, dataset: Dataset, pairs: Iterable[Pair], count: int, seed: int = 0
) -> list[Pair]:
    """The pairs, and so many of those that people graded, drawn at random: for their agreement.

    Args:
        path: The ``dataset.yaml``.
        dataset: The same, read.
        pairs: What is graded in any case.
        count: Pairs with people's grades that are needed; those among ``pairs`` count.
        seed: Of the draw.
    """
    chosen = dict.fromkeys(pairs)
    people: set[Pair] = set()
    for grades in load_people(path, dataset):
        table = grades.to_dict()
        people |= {(query, document) for query, row in table.items() for document in row}
    rest = sorted(people.difference(chosen))
    needed = min(len(rest), max(0, count - len(people.intersection(chosen))))
    return [*chosen, *random.Random(seed).sample(rest, needed)]  # noqa: S311 - no secret
