"""One engine by the commands of its user: pull, fuse with its dialect, eval; then compare."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from benchmarks.studies.pulled_engines.corpus import Corpus
from benchmarks.studies.pulled_engines.indexes import Settings
from benchmarks.studies.pulled_engines.orders import Lists, OrderCounts, compare_orders
from fusion_bench.engines.connectors._base import build_connector
from fusion_bench.evaluation.report_file import read_report
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.load_records import load_run

MEASURE: Final = "nDCG@10"
FUSED, REPLAY = "engine-fused", "replay"
#: Runs ``fusion-bench`` with these words; returns its exit code.
Command: TypeAlias = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Pull:
    """One pull of an engine.

    Attributes:
        engine: What ``pull`` calls it.
        settings: Keys of the connector.
        corpus: Its queries and their vectors.
        qrels: Lines of a TREC file of judgments.
        depth: Documents of each list.
        command: Runs ``fusion-bench``.
    """

    engine: str
    settings: Settings
    corpus: Corpus
    qrels: str
    depth: int
    command: Command

    def write(self, fusion: Mapping[str, Any] | None, folder: Path) -> PulledFolder:
        """Pull the lists into a dataset, and judge them.

        Args:
            fusion: What the engine fuses by; None = nothing.
            folder: A new folder.
        """
        words = [*self.prepare(fusion, folder)]
        pulled = PulledFolder(folder, self)
        shutil.rmtree(pulled.dataset, ignore_errors=True)
        pulled.run("pull", *words)
        (pulled.dataset / "qrels.trec").write_text(self.qrels, encoding="utf-8")
        with (pulled.dataset / "dataset.yaml").open("a", encoding="utf-8") as file:
            file.write("qrels: qrels.trec\n")
        return pulled

    def prepare(self, fusion: Mapping[str, Any] | None, folder: Path) -> list[str]:
        """Write what ``pull`` reads into a new folder; the words that follow ``pull``."""
        folder.mkdir(parents=True)
        config = folder / "pull.yaml"
        settings = {**self.settings, **({} if fusion is None else {"fused": dict(fusion)})}
        separate = json.loads(json.dumps(settings))  # without aliases
        config.write_text(yaml.safe_dump(separate), encoding="utf-8")
        queries, vectors = self.corpus.write_queries(folder)
        options = {"queries": queries, "config": config, "out": folder / "dataset"}
        legs = build_connector(self.engine, self.settings).legs.values()
        if any(leg.query_form == "vector" for leg in legs):
            options["vectors"] = vectors
        words = [f"--{key}={value}" for key, value in options.items()]
        return [self.engine, *words, f"--depth={self.depth}"]


@dataclass(frozen=True)
class PulledFolder:
    """A pulled dataset.

    Attributes:
        folder: Above the dataset's.
        pull: How it was pulled.
    """

    folder: Path
    pull: Pull

    @property
    def dataset(self) -> Path:
        """The dataset's folder."""
        return self.folder / "dataset"

    @property
    def record(self) -> dict[str, Any]:
        """What ``pull.json`` says."""
        data: dict[str, Any] = json.loads((self.dataset / "pull.json").read_text(encoding="utf-8"))
        return data

    def legs(self) -> dict[str, float]:
        """Leg → mean number of hits of a query."""
        lists = {each["name"]: each["hits"] / each["queries"] for each in self.record["lists"]}
        return {name: hits for name, hits in lists.items() if name != FUSED}

    def compare_replay(self) -> OrderCounts:
        """The engine's own fused lists beside those of the first experiment's ``replay``."""
        replay = self.folder / "replay.jsonl"
        whole = f"systems.{REPLAY}.top_k=null"  # scores of ties at the last rank
        words = ["--system", REPLAY, "--set", whole, "--out", str(replay)]
        self.run("fuse", str(self.experiment), *words)
        own = load_dataset(self.dataset / "dataset.yaml", every_query=True).runs[FUSED]
        ours = load_run(replay, name=REPLAY)
        return compare_orders(_ranked(own.to_dict()), _ranked(ours.to_dict()), self.pull.depth)

    def evaluate(self) -> dict[str, float]:
        """System of the first experiment → nDCG@10."""
        out = self.folder / "report"
        self.run("eval", str(self.experiment), "--no-plots", "--out", str(out))
        systems = read_report(out / "report.json").collections[0].systems
        return {system.name: system.measures[MEASURE].mean or 0.0 for system in systems}

    def run(self, *words: str) -> None:
        """Run a command.

        Raises:
            RuntimeError: Its exit code is not 0.
        """
        code = self.pull.command(words)
        if code != 0:
            raise RuntimeError(f"fusion-bench {' '.join(words)}: exit code {code}")

    @property
    def experiment(self) -> Path:
        """The experiment that came with the lists."""
        return self.dataset / "experiment.yaml"


def _ranked(lists: Mapping[str, Mapping[str, float]]) -> Lists:
    return {query: [*documents.items()] for query, documents in lists.items()}
