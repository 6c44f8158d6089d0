"""experiments/methods.yaml: a system for every registered method, on attack.

``python -m benchmarks.studies.leaderboard.methods`` renews it, and with ``--dataset`` prints the
same experiment for another dataset.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import yaml

from benchmarks.leaderboard.rows import (
    BASELINE,
    Lists,
    blend_systems,
    dialect_systems,
    fusion_systems,
    source_systems,
)
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.util.files import write_atomic

ROOT = Path(__file__).parents[3]
ATTACK = ROOT / "datasets" / "attack" / "dataset.yaml"
EXPERIMENT = ROOT / "experiments" / "methods.yaml"
HEAD = """\
# What `fusion-bench eval experiments/methods.yaml` runs: every fusion method, blend and dialect
# at its defaults. `make methods` writes it from the registries, and
# `python -m benchmarks.studies.leaderboard.methods --dataset PATH` prints it for another dataset.
# A system that needs one keyword and one semantic list names these two.
"""


def write_experiment(dataset: str, lists: Lists) -> str:
    """The experiment as YAML.

    Args:
        dataset: Its name, or a path.
        lists: What the dataset has.
    """
    groups = {
        "each source alone": source_systems(lists),
        "fusion methods": fusion_systems(lists, trained=False),
        "trained fusion methods, fitted out of fold": fusion_systems(lists, trained=True),
        "engines, each at its own defaults": dialect_systems(lists),
        "rerank blends": blend_systems(lists),
    }
    lines = [f"dataset: {dataset}", "measures: [nDCG@10, RR@10, R@100]", f"baseline: {BASELINE}"]
    lines.append("systems:")
    for title, systems in groups.items():
        lines += [f"  # {title}"] if systems else []
        lines += [f"  {_write_flow(name)}: {_write_flow(keys)}" for name, keys in systems.items()]
    return HEAD + "\n".join([*lines, "seed: 7"]) + "\n"


def _write_flow(value: object) -> str:
    """A value as YAML on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)
    return str(text).removesuffix("...\n").strip()


def main(arguments: Sequence[str] | None = None) -> None:
    """Renew experiments/methods.yaml, or print the experiment for another dataset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, help="a dataset.yaml; print instead of write")
    options = parser.parse_args(arguments)
    if options.dataset is None:
        text = write_experiment("attack", Lists.of_spec(read_spec(ATTACK)[0]))
        write_atomic(EXPERIMENT, text.encode())
        print(EXPERIMENT.relative_to(ROOT))
    else:
        lists = Lists.of_spec(read_spec(options.dataset)[0])
        print(write_experiment(str(options.dataset), lists), end="")


if __name__ == "__main__":
    main()
