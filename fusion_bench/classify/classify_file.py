"""A file of queries, with the type that a classifier predicts for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion_bench.classify.protocol import ClassifiedQuery, Classifier
from fusion_bench.config.query_types import PREDICTED_CONFIDENCE, PREDICTED_TYPE, type_of
from fusion_bench.errors import DataError
from fusion_bench.io.json_objects import load_queries, read_objects
from fusion_bench.io.outputs import write_output
from fusion_bench.schema import QueryType
from fusion_bench.util.json_lines import encode_json_lines


@dataclass(frozen=True)
class Predictions:
    """What a classifier made of a file of queries.

    Attributes:
        files: The files that were written.
        queries: How many queries there are.
        types: Predicted type → queries.
        confusion: Known type → predicted type → queries; only queries whose type is known.
        agreement: Share of those whose known type, or ``hybrid`` where that is not sure, is the
            predicted one; None without known types.
        failures: Query id → why the classifier gave no answer; such a query is ``hybrid``.
    """

    files: tuple[Path, ...]
    queries: int
    types: dict[str, int]
    confusion: dict[str, dict[str, int]]
    agreement: float | None
    failures: dict[str, str]


def classify_file(
    path: Path, classifier: Classifier, out: Path, *, records: Path | None = None
) -> Predictions:
    """Classify every query of a file.

    Args:
        path: JSON Lines of queries with ``id`` and ``text``.
        classifier: What classifies.
        out: The same lines with ``predicted_type`` and ``predicted_confidence``.
        records: Where to write the ``QueryClassification`` records, one a line; None = nowhere.

    Raises:
        DataError: A line breaks a rule, or a query has no text.
        FusionBenchError: The classifier cannot be used, or a file cannot be written.
    """
    known = load_queries(path)
    without = next((query.id for query in known.values() if query.text is None), None)
    if without is not None:
        raise DataError(f"{path}: query {without!r} has no 'text': a classifier needs it")
    answers = classifier.classify([query.text or "" for query in known.values()])
    objects = [item for _, item in read_objects(path)]
    lines = [
        {**item, PREDICTED_TYPE: str(answer.classification.type)}
        | {PREDICTED_CONFIDENCE: answer.classification.confidence}
        for item, answer in zip(objects, answers, strict=True)
    ]
    files = [write_output(out, encode_json_lines(lines))]
    if records is not None:
        texts = (f"{answer.classification.to_json()}\n" for answer in answers)
        files.append(write_output(records, "".join(texts).encode(), option="--records"))
    true = {
        query.id: type_of(query.type, query.confidence, tuple(QueryType))
        for query in known.values()
        if query.type is not None
    }
    predicted = {
        name: str(answer.classification.type) for name, answer in zip(known, answers, strict=True)
    }
    return Predictions(
        files=tuple(files),
        queries=len(known),
        types=_count(predicted.values()),
        confusion=_cross_tabulate(true, predicted),
        agreement=_share_equal(true, predicted),
        failures=_list_failures(list(known), answers),
    )


def _count(types: Iterable[str]) -> dict[str, int]:
    counts = Counter(types)
    return {str(name): counts[name] for name in QueryType}


def _cross_tabulate(
    true: Mapping[str, str], predicted: Mapping[str, str]
) -> dict[str, dict[str, int]]:
    kinds = [str(name) for name in QueryType if name in true.values()]
    return {
        kind: _count(predicted[query] for query, other in true.items() if other == kind)
        for kind in kinds
    }


def _share_equal(true: Mapping[str, str], predicted: Mapping[str, str]) -> float | None:
    if not true:
        return None
    return sum(predicted[query] == kind for query, kind in true.items()) / len(true)


def _list_failures(names: Sequence[str], answers: Sequence[ClassifiedQuery]) -> dict[str, str]:
    return {
        name: answer.failure for name, answer in zip(names, answers, strict=True) if answer.failure
    }
