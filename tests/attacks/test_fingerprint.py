"""One thing that values depend on is changed: nothing goes on from what was computed before it."""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from fusion_bench._version import ENGINE
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.io.dataset import load_dataset
from fusion_bench.tune.objective import create_objective, load_tuning_dataset
from fusion_bench.tune.search import search_fingerprint
from tests import tiny
from tests.attacks.attack import Attack
from tests.attacks.project import DATASET, EXPERIMENT, QRELS, QUERIES, RERANK, RUN
from tests.attacks.runner import run_attack, run_here
from tests.edits import Edit, nothing, replaced, text
from tests.gate import cases

LOG = "reports/mine/tuning/trials.jsonl"
FRONT = "reports/mine/tuning/trials-front.jsonl"
SYSTEM = """\
dataset: mine
measures: [RR@10]
baseline: mixed
tune: {system: mixed, front: {method: depths, depths: [0, 5]}}
systems:
  mixed:
    runs: [a, b]
    fusion: {method: rrf, k: 60, weights: {question: 2}}
    blend: {method: linear, reranker: r, depth: 5, missing: zero}
"""
TUNE = ("tune", EXPERIMENT, "--system", "mixed", "--trials", "3", "--folds", "0", "--no-plots")


class Change(NamedTuple):
    """One thing that changes.

    Attributes:
        part: The part of the fingerprint that it changes, as an error names it.
        spoil: What is done to the files.
        options: More words of the command.
    """

    part: str
    spoil: Edit = nothing
    options: tuple[str, ...] = ()


def added(name: str, line: str) -> Edit:
    def spoil(root: Path) -> None:
        path = root / name
        path.write_text(path.read_text() + line, encoding="utf-8")

    return spoil


def query(number: int, old: str, new: str) -> Edit:
    def spoil(root: Path) -> None:
        lines = (root / QUERIES).read_text().splitlines()
        lines[number] = lines[number].replace(old, new)
        text(QUERIES, "\n".join(lines) + "\n")(root)

    return spoil


def roles_swapped(root: Path) -> None:
    tiny.edit(root, DATASET, "[keyword]", "[question]")
    tiny.edit(root, DATASET, "[question, semantic]", "[keyword]")


DATA_CHANGES = {
    "a relevant document": Change("qrels: 1 row more than 60", added(QRELS, "q0 0 zz 1\n")),
    "a document judged 0": Change("qrels: 1 row more", added(QRELS, "q0 0 n1 0\n")),
    "a judgment less": Change("qrels: 1 row fewer", replaced(QRELS, "q7 0 d7 1\n", "")),
    "another grade": Change(
        "qrels: other contents in as many rows (60)",
        replaced(QRELS, "q7 0 d7 1\n", "q7 0 d7 2\n"),
    ),
    "complete judgments": Change(
        'judgments: "complete", was null',
        replaced(DATASET, "qrels: qrels.txt", "qrels: qrels.txt\njudgments: complete"),
    ),
    "relevance by grade": Change(
        "binary_relevance: 2, was 1",
        replaced(DATASET, "qrels: qrels.txt", "qrels: qrels.txt\nbinary_relevance: 2"),
    ),
    "roles swapped": Change(
        "runs/a.roles",
        roles_swapped,
    ),
    "another type": Change("queries.type", query(1, "local", "global")),
    "a confidence": Change("queries.confidence", query(1, '"local"', '"local", "confidence": 0.5')),
    "another group": Change("queries.group", query(1, '"g0"', '"g59"')),
    "a split": Change("queries.split", query(1, '"local"', '"local", "split": "dev"')),
    "an intent": Change("queries.intent", query(1, '"local"', '"local", "intent": "meta"')),
    "a field": Change("queries.area", query(1, '"local"', '"local", "area": "x"')),
    "a text": Change("queries.words", query(1, '"local"', '"local", "text": "a b"')),
    "a score": Change("runs/a: other contents", replaced(RUN, "q7 Q0 d7 1 0.9", "q7 Q0 d7 1 1.9")),
    "a document": Change("runs/a: other contents", replaced(RUN, "q7 Q0 n3 5", "q7 Q0 n9 5")),
    "a row less": Change("runs/a: 1 row fewer", replaced(RUN, "q7 Q0 n3 5 0.5 a\n", "")),
    "ties inside a source": Change(
        'runs/a.source_ties: "file", was "trec"',
        replaced(DATASET, "[keyword]}", "[keyword], source_ties: file}"),
    ),
    "repeated documents": Change(
        "runs/a.on_duplicate",
        replaced(DATASET, "[keyword]}", "[keyword], on_duplicate: best_rank}"),
    ),
    "a rerank score": Change(
        "rerank/r: other contents", replaced(RERANK, "q7 Q0 d7 2 0.8", "q7 Q0 d7 2 0.85")
    ),
    "rerank scores": Change(
        "rerank/r.score_space", replaced(DATASET, "space: unit", "space: unbounded")
    ),
}
CHANGES = DATA_CHANGES | {
    "a number": Change("system.fusion.k: 50.0, was 60.0", replaced(EXPERIMENT, "k: 60", "k: 50")),
    "a weight by role": Change(
        "system.fusion.weights.question", replaced(EXPERIMENT, "question: 2", "question: 3")
    ),
    "missing scores": Change(
        "system.blend.missing", replaced(EXPERIMENT, "missing: zero", "missing: below")
    ),
    "ties": Change("ties", replaced(EXPERIMENT, "systems:", "ties: first_seen\nsystems:")),
    "another measure": Change("measure", replaced(EXPERIMENT, "[RR@10]", "[nDCG@10]")),
    "a measure's option": Change("measure.", replaced(EXPERIMENT, "RR@10", "RR(rel=2)@10")),
    "another seed": Change("seed: 8, was 7", options=("--seed", "8")),
    "another sampler": Change("sampler", options=("--sampler", "random")),
}


def make_project(root: Path) -> Path:
    """The project with a system that reads all lists, and its weights depend on roles."""
    cases.make_project(root)
    text(EXPERIMENT, SYSTEM)(root)
    return root


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_project(tmp_path_factory.mktemp("tuned"))
    assert run_here(TUNE, root).code == 0
    return root


@pytest.fixture
def copy(tuned: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tuned, tmp_path / "project"))


@pytest.mark.parametrize("name", CHANGES)
def test_a_search_does_not_go_on_after_a_change(name: str, copy: Path) -> None:
    change = CHANGES[name]
    says = ("trials.jsonl: belongs to another search (", change.part)
    run_attack(Attack(name, (*TUNE, *change.options), change.spoil, says=says), copy)


def test_a_search_does_not_go_on_with_another_engine(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusion_bench.io.dataset.ENGINE", 0)
    run_attack(Attack("engine", TUNE, says=(f"another search (engine: 0, was {ENGINE})",)), copy)


def edited(number: int, pattern: str, new: str, log: str = LOG) -> Edit:
    def spoil(root: Path) -> None:
        lines = (root / log).read_text().splitlines(keepends=True)
        lines[number - 1] = re.sub(pattern, new, lines[number - 1], count=1)
        text(log, "".join(lines))(root)

    return spoil


VALUE = r'(?<="value":)[^,]+'
EDITS = [
    *(
        Attack(f"value {value}", TUNE, edited(2, VALUE, value), says=(f"{LOG}:2: not as a",))
        for value in ("5", "-1", "NaN", "Infinity", "true", '"0.5"', "null", "1" + "0" * 400)
    ),
    Attack("brackets", TUNE, edited(3, ".+", "[" * 100_000), says=(f"{LOG}:3: not as a",)),
    Attack("a cut line", TUNE, edited(2, ".{20}$", ""), says=(f"{LOG}:2: not as a",)),
    Attack("another default", TUNE, edited(2, "60", "61"), says=(f"{LOG}:2: not",)),
    Attack("edited data", TUNE, edited(1, "60 rows|60", "61"), says=(f"{LOG}:1: not as a",)),
    Attack("the front's", TUNE, edited(2, VALUE, "1.0", FRONT), says=(f"{FRONT}:2: not as a",)),
    Attack(
        "an earlier version",
        TUNE,
        text(LOG, '{"version": 1, "search": "0a"}\n{"value": 0.5, "params": {}}\n'),
        says=(f"{LOG}:1: an earlier version wrote this log", f"(rm {LOG})"),
    ),
]


@pytest.mark.parametrize("case", EDITS, ids=str)
def test_an_edited_log_is_refused_with_its_line(case: Attack, copy: Path) -> None:
    run_attack(case, copy)


def test_a_line_that_a_kill_cut_short_is_dropped(copy: Path) -> None:
    path = copy / LOG
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert run_here(TUNE, copy).code == 0
    assert path.read_bytes() == whole


def search_digest(root: Path) -> str:
    """The digest that names a shared study."""
    experiment, source = read_experiment(root / EXPERIMENT)
    tuning = TuneSettings(system="mixed")
    dataset = load_tuning_dataset(experiment, source, tuning, root / DATASET)
    objective = create_objective(experiment, source, tuning, dataset)
    return search_fingerprint(objective, tuning.search_settings()).digest


def test_a_shared_study_has_another_name_after_every_change(tmp_path: Path) -> None:
    digests = set()
    changes = [change for change in CHANGES.values() if change.spoil is not nothing]
    for number, change in enumerate([Change(""), *changes]):
        root = make_project(tmp_path / str(number))
        change.spoil(root)
        digests.add(search_digest(root))
    assert len(digests) == len(changes) + 1


@pytest.mark.parametrize("name", DATA_CHANGES)
def test_the_cache_answers_with_what_stands_in_the_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSION_BENCH_CACHE", str(tmp_path / "cache"))
    root = make_project(tmp_path)
    before = load_dataset(root / DATASET)
    before.aligned(["a", "b"])
    DATA_CHANGES[name].spoil(root)
    now, plain = load_dataset(root / DATASET), load_dataset(root / DATASET, cache=False)
    assert now.contents.parts == plain.contents.parts
    assert now.fingerprint != before.fingerprint
    views = [dataset.aligned(["a", "b"]).to_pandas() for dataset in (now, plain)]
    assert views[0].equals(views[1])
