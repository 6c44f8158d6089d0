"""The tiny dataset with three trials of ``a``, and each trial as a dataset of its own."""

import pytest

from fusion_bench.evaluation.report_records import Collection
from tests.evaluation.trials.reports import run
from tests.trials_project import TRIALS, make, make_plain


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    root = tmp_path_factory.mktemp("repeated")
    make(root, *TRIALS)
    return run(root).collections[0]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[Collection]:
    collections = []
    for text in TRIALS:
        root = tmp_path_factory.mktemp("alone")
        make_plain(root, text)
        collections.append(run(root).collections[0])
    return collections
