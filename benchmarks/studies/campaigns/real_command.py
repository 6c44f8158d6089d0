"""Campaigns through the command itself, beside their replay: the same answers, ask by ask."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.collections import load_collection
from benchmarks.studies.campaigns.pool import Pool, baseline_of, rank_settings
from benchmarks.studies.campaigns.proposers import PROPOSERS
from benchmarks.studies.campaigns.replay import Proposer, Ships, Side, World, campaign_rule, replay
from fusion_bench.campaign.ask import AskedCandidate, Referee
from fusion_bench.campaign.records import CampaignAnswer
from fusion_bench.campaign.state import CampaignPaths
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.fingerprints import query_digests
from fusion_bench.io.held_out import read_everything

#: Queries, settings and asks of each campaign.
QUERIES, SETTINGS, ASKS = 600, 60, 50
#: Proposer and declared ships, in turn; every second campaign has permuted grades.
TURNS: Final[Sequence[tuple[str, int]]] = (("random", 1), ("climber", 3), ("TPE", 1))
#: Share of the settings that are worse than the baseline: most asks are kept.
BASELINE: Final = 0.6
#: The default of an experiment.
MIN_GAIN: Final = 0.005
SEED: Final = 311


@dataclass(frozen=True)
class RealCampaign:
    """One campaign.

    Attributes:
        data: Of the collection.
        is_null: Whether grades were permuted.
        proposer: Key.
        declared: Ships.
        held_out: Queries.
        asked: How many candidates were asked about.
        ships: Numbers of the asks that shipped.
        replayed: The same of the replay.
        repeats_agree: Whether the command line repeats the last answer without a charge.
    """

    data: str
    is_null: bool
    proposer: str
    declared: int
    held_out: int
    asked: int
    ships: tuple[int, ...]
    replayed: tuple[int, ...]
    repeats_agree: bool

    @property
    def agrees(self) -> bool:
        """Whether every answer is that of the replay."""
        return self.repeats_agree and self.ships == self.replayed


def run_real_campaigns(
    name: str,
    count: int,
    *,
    first: int = 0,
    queries: int = QUERIES,
    settings: int = SETTINGS,
    asks: int = ASKS,
) -> Iterator[RealCampaign]:
    """Open, ask and replay campaigns over queries drawn from a collection, or ``toy``."""
    collection = load_collection(name)
    runs = replace(collection.runs, spaces=collection.spaces)
    for number in range(first, count):
        rng = np.random.default_rng([SEED, number])
        chosen = np.zeros(len(runs.queries), dtype=bool)
        chosen[rng.permutation(len(chosen))[:queries]] = True
        part, is_null = runs.subset(chosen), bool(number % 2)
        proposer, ships = TURNS[number // 2 % len(TURNS)]
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            grades = deal_to_candidates(part, rng) if is_null else part.grades.astype(np.float64)
            write_dataset(root, part, grades)
            project = RealProject(root, name, settings, number)
            yield project.run(proposer, ships, asks, is_null=is_null)


def deal_to_candidates(runs: AlignedRuns, rng: np.random.Generator) -> FloatArray:
    """(N,): the grades of each query, permuted over its candidates."""
    grades = np.maximum(runs.grades, 0).astype(np.float64)
    for start, stop in zip(runs.offsets[:-1], runs.offsets[1:], strict=True):
        grades[start:stop] = rng.permutation(grades[start:stop])
    return grades


def write_dataset(root: Path, runs: AlignedRuns, grades: FloatArray) -> None:
    """Write lists, rerank lists and judgments of every candidate into ``datasets/made``."""
    folder = root / "datasets/made"
    folder.mkdir(parents=True)
    documents = [runs.vocabulary[code] for code in runs.documents.tolist()]
    queries = [runs.queries[q] for q in runs.query_index.tolist()]
    spec: dict[str, Any] = {"name": "made", "qrels": "qrels.txt", "judgments": "complete"}
    tables = {"runs": (runs.sources, runs.scores), "rerank": (runs.rerankers, runs.rerank)}
    for kind, (names, scores) in tables.items():
        for number, (name, row) in enumerate(zip(names, scores, strict=True)):
            file = f"{kind}-{number}.trec"
            listed = np.flatnonzero(~np.isnan(row))
            lines = (
                f"{queries[n]} Q0 {documents[n]} 0 {float(row[n])!r} s\n" for n in listed.tolist()
            )
            (folder / file).write_text("".join(lines), encoding="utf-8")
            spec.setdefault(kind, {})[name] = {"path": file}
            if kind == "rerank":
                spec[kind][name]["score_space"] = runs.spaces[name]
    judged = zip(queries, documents, np.maximum(grades, 0).astype(int).tolist(), strict=True)
    lines = (f"{query} 0 {document} {grade}\n" for query, document, grade in judged)
    (folder / "qrels.txt").write_text("".join(lines), encoding="utf-8")
    (folder / "dataset.yaml").write_text(json.dumps(spec), encoding="utf-8")


class RealProject:
    """A folder with a dataset, an experiment and a campaign."""

    def __init__(self, root: Path, name: str, settings: int, number: int) -> None:
        self.root, self.name, self.number = root, name, number
        with read_everything():
            dataset = load_dataset(root / "datasets/made/dataset.yaml")
        self.runs = dataset.align_repeats([*dataset.runs]).common_repeats()
        self.pool: Pool = rank_settings(name, self.runs, settings, seed=number)
        self.values = self.pool.evaluate("nDCG@10").astype(np.float64)
        self.baseline = baseline_of(self.values, BASELINE)

    def run(self, proposer: str, ships: int, asks: int, *, is_null: bool) -> RealCampaign:
        """Ask through the campaign, and replay it."""
        self._open(ships, asks)
        paths = CampaignPaths.read(self.root / "reports/campaigns/e")
        world, seed = self._split(paths), [SEED, self.number]
        asked, found = self._ask_all(paths, world, PROPOSERS[proposer], asks, seed)
        rule = campaign_rule(asks, ships, min_gain=MIN_GAIN)
        [expected] = replay(world, PROPOSERS[proposer], [rule], asks, seed)
        return RealCampaign(
            data=self.name,
            is_null=is_null,
            proposer=proposer,
            declared=ships,
            held_out=world.held_out.values.shape[1],
            asked=len(asked),
            ships=tuple(number for number, _ in found),
            replayed=tuple(number for number, _ in expected),
            repeats_agree=found == expected and self._repeat(*asked[-1]),
        )

    def _command(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fusion_bench", "campaign", *words, "--json"]
        return subprocess.run(  # noqa: S603 - our own module
            command, cwd=self.root, capture_output=True, text=True, check=False
        )

    def _open(self, ships: int, asks: int) -> None:
        systems = {"base": self.pool.configs[self.baseline]}
        experiment = {"dataset": "made", "measures": ["nDCG@10"], "baseline": "base"}
        tuning = {"system": "base", "split_seed": f"{self.number}"}
        (self.root / "experiments").mkdir()
        text = json.dumps({**experiment, "systems": systems, "tune": tuning})
        (self.root / "experiments/e.yaml").write_text(text, encoding="utf-8")
        declared = ("--asks", str(asks), "--ships", str(ships), "--allow-weak")
        done = self._command("open", "experiments/e.yaml", *declared)
        if done.returncode:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr}{done.stdout}")

    def _split(self, paths: CampaignPaths) -> World:
        """The queries as the campaign split them."""
        state = paths.read_state()
        differences = self.values - self.values[self.baseline]
        sides = []
        for digests in (state.plan.tuning, state.held_out.queries):
            known = frozenset(digests)
            members = [query_digests([query])[0] in known for query in self.runs.queries]
            sides.append(Side.select(differences, self.pool.groups, np.flatnonzero(members)))
        return World(sides[0], sides[1], self.pool.points)

    def _ask_all(
        self,
        paths: CampaignPaths,
        world: World,
        proposer: Proposer,
        asks: int,
        seed: Sequence[int],
    ) -> tuple[list[tuple[int, CampaignAnswer]], Ships]:
        """Each candidate with its answer, and what shipped; the proposer sees answers alone."""
        referee, rng = Referee(paths, is_served=True), np.random.default_rng([*seed, 1])
        is_asked = np.zeros(len(world.points), dtype=bool)
        order = proposer(world, is_asked, None, np.random.default_rng(seed))[:asks].tolist()
        asked: list[tuple[int, CampaignAnswer]] = []
        ships: Ships = []
        while order:
            candidate = order.pop(0)
            source = Source(Path("candidate"), self.pool.configs[candidate])
            answer = referee.ask(AskedCandidate(source))
            if answer.answer == "closed":
                break
            is_asked[candidate] = True
            asked.append((candidate, answer))
            if answer.answer == "ship":
                ships.append((len(asked), candidate))
                order = proposer(world, is_asked, candidate, rng)[: asks - len(asked)].tolist()
        return asked, ships

    def _repeat(self, candidate: int, before: CampaignAnswer) -> bool:
        """Ask about a candidate again, on the command line."""
        path = self.root / "candidate.yaml"
        path.write_text(json.dumps(self.pool.configs[candidate]), encoding="utf-8")
        done = self._command("ask", "reports/campaigns/e", path.name)
        told = json.loads(done.stdout)
        status = {"ship": 0, "keep": 1}[str(before.answer)]
        same = (told["answer"], told["number"]) == (before.answer, before.number)
        return bool(told["is_repeated"]) and same and done.returncode == status
