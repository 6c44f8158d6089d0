"""The code blocks of the pages: experiments, systems and datasets are valid, code compiles."""

import json
import re
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from docs.website.page import list_pages
from fusion_bench.engines.connectors._base import build_connector
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.judging.llm_request import LlmJudgeConfig
from fusion_bench.models.rerank_config import RerankConfig

ROOT = Path(__file__).parents[2]
DOCS = list_pages()
PAGES = [ROOT / "README.md", *DOCS]
#: Systems that the fragments of an experiment name.
SYSTEMS = {
    "other": {"runs": ["bm25", "dense"]},
    "rrf-v2": {"runs": ["bm25", "dense"], "fusion": "rrf_v2"},
    "today": {"runs": ["bm25", "dense"], "blend": {"method": "linear", "reranker": "ltr"}},
}
#: First keys of blocks that are no input of this program.
FOREIGN = {True, "permissions", "repos", "lint"}
#: Pages whose lines tests of their own run.
RUN_WHOLE = {"live", "thresholds"}


class Block(NamedTuple):
    """A fenced block.

    Attributes:
        page: The page's name.
        line: Where it begins.
        text: What stands in it.
    """

    page: str
    line: int
    text: str


def list_blocks(language: str) -> list[Block]:
    blocks = []
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        for match in re.finditer(
            rf"^( *)```{language}\n(.*?)^\1```", page, re.MULTILINE | re.DOTALL
        ):
            line = page[: match.start()].count("\n") + 1
            blocks.append(Block(path.stem, line, textwrap.dedent(match[2])))
    return blocks


def each(language: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "block", list_blocks(language), ids=lambda block: f"{block.page}:{block.line}"
    )


@each("yaml")
def test_yaml_is_what_some_model_reads(block: Block, tmp_path: Path) -> None:
    data = yaml.safe_load(block.text)
    if isinstance(data, list) or set(data) & FOREIGN or block.page in RUN_WHOLE:
        return
    if block.page == "pull":
        first = block.text.splitlines()[0]
        assert first.startswith("# fusion-bench pull "), "the first line names the engine"
        build_connector(first.split()[3], data)
        return
    if block.text.startswith("# judge.yaml"):
        LlmJudgeConfig.model_validate(data)
        return
    if block.page == "lint":
        data = data["system"]
    keys = set(data)
    tune = {"effort", "front"}
    if keys <= {*System.model_fields, "dialect"} or "by_query_type" in keys:
        check_experiment({"systems": {"mine": {"runs": ["bm25", "dense"], **data}}}, tmp_path)
    elif keys <= tune:
        check_experiment({"tune": {"system": "today", **data}}, tmp_path)
    elif keys <= set(DatasetSpec.model_fields):
        DatasetSpec.model_validate({"name": "mine", "qrels": "qrels.txt", **data})
    elif keys <= set(Experiment.model_fields):
        check_experiment(data, tmp_path)
    else:
        assert keys <= set(RerankConfig.model_fields), keys


def check_experiment(data: dict[str, Any], folder: Path) -> None:
    """Read an experiment, its other parts filled in."""
    systems = {**SYSTEMS, **data.get("systems", {})}
    path = folder / "mine.yaml"
    whole = {"dataset": "mine", "baseline": "other", **data, "systems": systems}
    path.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    experiment, _ = read_experiment(path)
    assert len(experiment.systems) >= len(systems)


@each("python")
def test_python_compiles(block: Block) -> None:
    assert compile(block.text, f"{block.page}.md", "exec")


@each("json")
def test_json_reads(block: Block) -> None:
    try:
        assert json.loads(block.text)
    except json.JSONDecodeError:  # one document a line
        assert all(json.loads(line) for line in block.text.splitlines())


def test_the_pages_have_blocks_of_each_kind() -> None:
    counts = {language: len(list_blocks(language)) for language in ("yaml", "python", "json")}
    assert counts["yaml"] > len(dialects.load_built_in())
    assert counts["python"] > 10
    assert counts["json"] > 5
