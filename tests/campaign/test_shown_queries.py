"""Every command that shows values of judged queries writes it beside the dataset."""

import os
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.evaluation.prepared_dataset import prepare_dataset
from fusion_bench.io import looks
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.fingerprints import query_digests
from fusion_bench.io.looks import QuerySet, read_ledger
from tests import campaign_project
from tests.attacks.project import DATASET, EXPERIMENT, QRELS, RUN
from tests.golden.project import make_project, worsen
from tests.golden.test_pages import CALLS
from tests.golden.test_pages import OTHER as OTHER_RUN
from tests.tiny import edit

LEDGER = Path("datasets/mine/looks.jsonl")
QUERIES = 60
#: Commands that show values or grades of all judged queries.
SHOWING = {
    *("dataset unjudged", "diagnose", "eval", "eval -v", "export", "gate", "grades estimate"),
    *("grades sample", "judge", "threshold", "try", "tune", "tune -v"),
}
#: Python function → a call that shows values of all judged queries.
FUNCTIONS: dict[str, Callable[[], Any]] = {
    "agreement": lambda: fb.agreement(DATASET),
    "compare": lambda: fb.compare(QRELS, {"a": RUN, "b": OTHER_RUN}, measures="RR@10"),
    "compare a dataset": lambda: fb.compare(DATASET, ["a", "b"], measures="RR@10"),
    "documents_to_judge": lambda: fb.documents_to_judge(EXPERIMENT),
    "gate": lambda: fb.gate(EXPERIMENT),
    "run_experiment": lambda: fb.run_experiment(EXPERIMENT),
    "tune": lambda: fb.tune(DATASET, trials=2, measure="RR@10"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The golden pages' project after an evaluation, a baseline and a change."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(make_project(tmp_path_factory.mktemp("project")))
        assert main(["eval", EXPERIMENT, "--out", "before", "--no-html"]) == 0
        assert main(["gate", EXPERIMENT, "--update", "--reason", "first"]) == 0
        worsen(Path())
        assert main(["eval", EXPERIMENT, "--out", "after", "--no-html"]) == 0
        yield Path()


def shown() -> set[str]:
    return {digest for line in read_ledger(LEDGER) for digest in line.queries}


ALL = set(query_digests(f"q{q}" for q in range(QUERIES)))


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("command", CALLS)
def test_commands_record_what_they_show(command: str) -> None:
    LEDGER.unlink(missing_ok=True)
    code, words = CALLS[command]
    assert main(words.split()) == code
    expected = set(query_digests(["q3"])) if command == "explain" else ALL
    assert shown() == (expected if command in {*SHOWING, "explain"} else set())


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_record_what_they_show(name: str) -> None:
    LEDGER.unlink(missing_ok=True)
    FUNCTIONS[name]()
    assert shown() == ALL


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(campaign_project.make(tmp_path))
    return tmp_path


def evaluate(root: Path, *options: str) -> None:
    words = ("eval", "experiments/e.yaml", "--out", str(root / "elsewhere"), "--force")
    assert main([*words, "--no-html", *options]) == 0


def made_ledger(root: Path) -> Path:
    return root / "datasets/made/looks.jsonl"


def test_a_campaign_refuses_queries_that_eval_showed(root: Path) -> None:
    evaluate(root)
    with pytest.raises(ConfigError, match=r"looks\.jsonl: .*100") as error:
        campaign_project.open_made(root)
    assert "--no-guarantee" in str(error.value)
    status = campaign_project.open_made(root, accepts_no_guarantee=True)
    assert "looks.jsonl" in status.no_guarantee


def test_the_remedy_of_the_refusal_works(root: Path) -> None:
    """New queries in a split ``test`` open a campaign, the shown ones in ``dev``."""
    evaluate(root)
    folder = root / "datasets/made"
    for name in ("qrels.txt", "weak.trec", "strong.trec"):
        lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
        added = [f"new-{line}".replace(" r", " s").replace(" x", " y") for line in lines]
        (folder / name).write_text("".join([*lines, *added]), encoding="utf-8")
    rows = [
        f'{{"id": "{prefix}q{q}", "split": "{split}"}}\n'
        for prefix, split in (("", "dev"), ("new-", "test"))
        for q in range(campaign_project.QUERIES)
    ]
    (folder / "queries.jsonl").write_text("".join(rows), encoding="utf-8")
    edit(root, campaign_project.DATASET, "runs:", "queries: queries.jsonl\nruns:")
    status = campaign_project.open_made(root)
    assert (status.held_out_queries, status.no_guarantee) == (campaign_project.QUERIES, "")
    assert "nobody has seen" in status.guarantee


def test_another_id_of_a_shown_query_is_known_by_its_judgments(root: Path) -> None:
    evaluate(root)
    for path in (root / "datasets/made").glob("*.t*"):
        path.write_text(path.read_text().replace("q", "other"))
    with pytest.raises(ConfigError, match="100 held-out queries"):
        campaign_project.open_made(root)


def test_queries_are_written_once_and_again_only_with_new_ones(root: Path) -> None:
    evaluate(root)
    first = made_ledger(root).read_bytes()
    evaluate(root, "--set", "systems.both.fusion.k=20")
    assert made_ledger(root).read_bytes() == first
    for path in (root / "datasets/made").glob("*.t*"):
        path.write_text(
            f"{path.read_text()}{path.read_text().splitlines()[0]}\n".replace("q0", "n", 1)
        )
    evaluate(root)
    assert [type(line) for line in read_ledger(made_ledger(root))] == [QuerySet, QuerySet]


def test_try_save_writes_what_it_showed_beside_the_new_dataset(root: Path) -> None:
    loose = root / "loose"
    loose.mkdir()
    for name in ("qrels.txt", "weak.trec", "strong.trec"):
        (root / "datasets/made" / name).rename(loose / name)
    lists = [str(loose / "weak.trec"), str(loose / "strong.trec")]
    words = ["try", "--qrels", str(loose / "qrels.txt"), *lists, "--save", "saved"]
    assert main(words) == 0
    assert {each.name for each in loose.iterdir()} == {"qrels.txt", "weak.trec", "strong.trec"}
    [line] = read_ledger(root / "saved/looks.jsonl")
    assert len(line.queries) == campaign_project.QUERIES


@pytest.mark.parametrize("obstacle", ["installed", "read-only", "full"])
def test_a_ledger_that_cannot_be_written_stops_nothing(
    root: Path, obstacle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if obstacle == "installed":
        monkeypatch.setattr(sysconfig, "get_path", lambda _: str(root))
    elif obstacle == "read-only":
        unwritable = SimpleNamespace(access=lambda *_: False, W_OK=os.W_OK)
        monkeypatch.setattr(looks, "os", unwritable)
    else:

        def refuse(*_: object) -> None:
            raise DataError("full")

        monkeypatch.setattr(looks, "write_atomic", refuse)
    evaluate(root)
    assert not made_ledger(root).exists()


def test_a_damaged_ledger_is_refused(root: Path) -> None:
    evaluate(root)
    text = made_ledger(root).read_text()
    made_ledger(root).write_text(text.replace('"date":"2', '"date":"3'))
    words = ["eval", "experiments/e.yaml", "--out", "again", "--no-html"]
    assert main(words) == 2


def test_queries_without_judgments_are_not_recorded(root: Path) -> None:
    from fusion_bench.experiment.experiment import read_experiment

    experiment, source = read_experiment(root / "experiments/e.yaml")
    path = root / campaign_project.DATASET
    edit(root, campaign_project.DATASET, "qrels: qrels.txt\n", "")
    prepare_dataset(experiment, source, load_dataset(path, every_query=None))
    assert not made_ledger(root).exists()
