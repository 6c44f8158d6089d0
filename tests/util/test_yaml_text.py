"""Plain data as YAML."""

from __future__ import annotations

import yaml

from fusion_bench.config.yaml_files import format_compact_yaml


def test_the_innermost_stands_on_one_line_without_aliases() -> None:
    shared = ["bm25", "dense"]
    data = {"a": {"runs": shared}, "b": {"runs": shared}}
    text = format_compact_yaml(data)
    assert text == "a:\n  runs: [bm25, dense]\nb:\n  runs: [bm25, dense]\n"
    assert yaml.safe_load(text) == data
