"""The judges of a dataset: its judgments, and the further judges that it names."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.errors import ConfigError
from fusion_bench.grades.agreement.measure_agreement import JudgeGrades
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.judgments.load_judge import load_judge


def read_judges(path: Path) -> tuple[dict[str, JudgeGrades], int]:
    """The grades of each judge by name, the judgments as ``qrels``; and the grade of relevance.

    Args:
        path: The ``dataset.yaml``.

    Raises:
        ConfigError: It names no further judge.
        DataError: A file breaks a rule.
    """
    dataset = load_dataset(path, runs=(), rerankers=(), every_query=None)
    spec = dataset.spec
    if not spec.judges:
        raise ConfigError(
            f"{path}: no 'judges': add the file of a second judge, such as "
            "judges: {people: {path: people.csv, kind: human}}"
        )
    judges = {} if spec.qrels is None else {"qrels": JudgeGrades(dataset.qrels, spec.qrels.kind)}
    judges |= {
        name: JudgeGrades(load_judge(dataset, name), judge.kind)
        for name, judge in spec.judges.items()
    }
    return judges, spec.binary_relevance
