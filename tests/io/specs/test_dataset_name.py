"""Names of datasets, made from any text."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from fusion_bench.io.dataset_config import DatasetSpec, make_dataset_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("log", "log"),
        ("my search.log", "my-search.log"),
        (".hidden", "hidden"),
        ("検索", "default"),
        ("", "default"),
        ("a/b", "a-b"),
    ],
)
def test_any_text_becomes_a_name_that_a_dataset_may_have(text: str, name: str) -> None:
    assert make_dataset_name(text, "default") == name
    field = DatasetSpec.model_fields["name"]
    assert TypeAdapter(field.rebuild_annotation()).validate_python(name) == name
