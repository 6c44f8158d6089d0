"""The models of a dataset.yaml."""

from __future__ import annotations

import pytest

from fusion_bench.config.models import StrictModel
from fusion_bench.data.document_rows import COLUMN_NAMES, QRELS_ROLES, RUN_ROLES
from fusion_bench.io.dataset_config import QrelsColumns, RunColumns


@pytest.mark.parametrize(("model", "roles"), [(QrelsColumns, QRELS_ROLES), (RunColumns, RUN_ROLES)])
def test_columns_are_named_by_the_roles_that_readers_know(
    model: type[StrictModel], roles: tuple[str, ...]
) -> None:
    assert tuple(model.model_fields) == roles
    assert set(roles) <= set(COLUMN_NAMES)
