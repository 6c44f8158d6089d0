"""Roles of lists in ``fuse``, ``compare`` and ``tune``: which one is the question's."""

from pathlib import Path
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.errors import ConfigError
from tests import tiny
from tests.api.cases import BM25, DENSE, QRELS, RUNS, make_collection

SYSTEMS: dict[str, Any] = {"v1": "rrf", "v2": "rrf_v2"}
#: DENSE with the role, as a run had it before calls could give it.
ASKED = {"bm25": BM25, "dense": fb.Run.from_dict("dense", DENSE, roles=frozenset({"question"}))}


@pytest.mark.parametrize("name", ["question", "query", "original"])
def test_a_name_gives_the_role(name: str) -> None:
    fused = fb.fuse({"bm25": BM25, name: DENSE}, "rrf_v2")
    assert fused.to_dict() == fb.fuse(ASKED, "rrf_v2").to_dict()
    assert fused.to_dict() != fb.fuse(ASKED, "rrf").to_dict()


def test_a_call_gives_the_role() -> None:
    roles = {"dense": "question"}
    assert fb.fuse(RUNS, "rrf_v2", roles=roles).to_dict() == fb.fuse(ASKED, "rrf_v2").to_dict()
    compared = fb.compare(QRELS, RUNS, SYSTEMS, "RR@10", roles=roles)
    expected = fb.compare(QRELS, ASKED, SYSTEMS, "RR@10")
    assert compared.to_dict()["systems"] == expected.to_dict()["systems"]
    qrels, runs = make_collection()
    names = {next(iter(runs)): ["question", "keyword"]}
    tuned = fb.tune(qrels, runs, "rrf_v2", roles=names, trials=2, folds=0)
    assert tuned.report.default["fusion"]["method"] == "rrf_v2"


def test_a_call_gives_the_role_in_a_dataset(tmp_path: Path) -> None:
    file = tiny.make(tmp_path) / "datasets/tiny/dataset.yaml"
    dataset = fb.load_dataset(file)
    name = next(each for each, run in dataset.runs.items() if "question" not in run.roles)
    others = {each: "semantic" for each in dataset.runs if each != name}
    given = {**others, name: "question"}
    compared = fb.compare(dataset, systems=SYSTEMS, roles=given)
    assert compared.report.collections[0].fingerprint != dataset.fingerprint  # roles are in it
    assert fb.fuse(dataset, "rrf_v2", roles=given).to_dict() != fb.fuse(dataset, "rrf").to_dict()
    assert name not in {each for each, run in dataset.runs.items() if "question" in run.roles}


@pytest.mark.parametrize(
    "call",
    [
        lambda roles: fb.fuse(RUNS, "rrf_v2", roles=roles),
        lambda roles: fb.compare(QRELS, RUNS, SYSTEMS, roles=roles),
        lambda roles: fb.tune(*make_collection(), "rrf_v2", roles=roles),
    ],
)
@pytest.mark.parametrize("roles", [None, {"bm25": "keyword"}])
def test_the_error_names_the_argument_and_no_file(call: Any, roles: object) -> None:  # noqa: ANN401
    with pytest.raises(ConfigError) as raised:
        call(roles)
    assert "roles={'LIST': 'question'}" in str(raised.value)
    assert "dataset.yaml" not in str(raised.value)


def test_the_command_that_fuses_files_accepts_roles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tiny.make(tmp_path) / "datasets/tiny")
    command = ["fuse", "a=a.trec", "b=b.trec", "--method", "rrf_v2", "--out", "fused.trec"]
    assert main(command) == 2
    assert "--role LIST=question" in capsys.readouterr().err
    assert main([*command, "--role", "b=question"]) == 0
    runs = {"a": "a.trec", "b": "b.trec"}
    fused = fb.fuse(runs, "rrf_v2", roles={"b": "question"})
    assert Path("fused.trec").read_text(encoding="utf-8") == fused.to_trec()
