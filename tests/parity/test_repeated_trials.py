"""Weaviate's search agents on BRIGHT, three trials each: the published means and deviations."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.evaluation.report_records import Collection
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from tests.parity.data import parity_data

#: Mean nDCG@10 of three trials, in the order of AGENTS.
PUBLISHED = {
    "bright-biology": (0.1300, 0.4304, 0.5057, 0.5749),
    "bright-economics": (0.1646, 0.2746, 0.2396, 0.3125),
    "bright-robotics": (0.1450, 0.2519, 0.3051, 0.4174),
}
#: Its standard deviation over trials, and the first trial, on bright-biology.
DEVIATIONS = (0, 0.0166, 0.0048, 0.0072)
FIRST_REPEAT = (0.1300, 0.4286, 0.5003, 0.5689)
AGENTS = ("hybrid-search", "effort-medium", "effort-high", "effort-ultrahigh")

EXPERIMENT = """\
datasets: [{names}]
measures: [nDCG@10]
baseline: hybrid-search
systems:
{agents}
{fusions}
"""
DATASET = """\
name: {name}
qrels: qrels.txt
judgments: complete
runs:
{runs}
"""


def write_project(root: Path) -> Path:
    """The three collections with a ``dataset.yaml`` each, and an experiment on them."""
    for name in PUBLISHED:
        folder = root / "datasets" / name
        shutil.copytree(parity_data("weaviate-agents") / name, folder)
        runs = "\n".join(f'  {agent}: {{path: "runs/{agent}-*.trec.gz"}}' for agent in AGENTS)
        (folder / "dataset.yaml").write_text(DATASET.format(name=name, runs=runs), encoding="utf-8")
    agents = "\n".join(f"  {agent}: {{runs: [{agent}]}}" for agent in AGENTS)
    fusions = "\n".join(f"  rrf-{a}: {{runs: [hybrid-search, {a}]}}" for a in AGENTS[1:])
    path = root / "experiment.yaml"
    text = EXPERIMENT.format(names=", ".join(PUBLISHED), agents=agents, fusions=fusions)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Collection]:
    root = tmp_path_factory.mktemp("agents")
    experiment, source = read_experiment(write_project(root))
    report = run_experiment(experiment, source, folders=[root / "datasets"])
    return {collection.name: collection for collection in report.collections}


@pytest.mark.parametrize("name", PUBLISHED)
def test_means_over_trials(name: str, collections: dict[str, Collection]) -> None:
    means = [collections[name].system(agent).measures["nDCG@10"].mean for agent in AGENTS]
    assert means == pytest.approx(PUBLISHED[name], abs=5e-5)


def test_deviations_over_trials(collections: dict[str, Collection]) -> None:
    systems = collections["bright-biology"].systems
    values = {row.name: np.array(row.measures["nDCG@10"].trials) for row in systems}
    means = np.array([values[agent].mean(axis=1) for agent in AGENTS])
    assert means.std(axis=1, ddof=1) == pytest.approx(DEVIATIONS, abs=5e-5)
    assert means[:, 0] == pytest.approx(FIRST_REPEAT, abs=5e-5)


@pytest.mark.parametrize("name", PUBLISHED)
def test_fusing_with_hybrid_search_loses(name: str, collections: dict[str, Collection]) -> None:
    collection = collections[name]
    assert collection.fusion is not None
    # Three trials of each of 103 economics queries do not show it.
    assert collection.fusion.verdict == ("not shown" if "economics" in name else "loses")
    for agent in AGENTS[1:]:
        names = (agent, f"rrf-{agent}")
        alone, fused = (collection.system(each).measures["nDCG@10"].mean for each in names)
        assert fused is not None
        assert alone is not None
        assert fused < alone
