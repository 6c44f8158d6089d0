"""``tune --engine``: the engine's own methods are searched, and nothing else."""

import json
from pathlib import Path

import pytest
import yaml

from fusion_bench.cli import main
from tests import tiny


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tiny.make(tmp_path)


def tune(root: Path, *options: str) -> int:
    folders = ["--datasets", str(root / "datasets"), "--out", str(root / "out")]
    words = ["--trials", "12", "--folds", "0", "--json", *folders, *options]
    return main(["tune", str(root / tiny.EXPERIMENT), *words])


def test_every_method_of_the_engine_is_searched_and_exported_exactly(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune(root, "--system", "one", "--engine", "elasticsearch") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["settings"]["engine"] == "elasticsearch"
    (methods,) = (p["choices"] for p in report["parameters"] if p["path"] == "fusion.method")
    assert methods == ["linear", "rrf"]
    paths = {path for trial in report["trials"] for path in trial["params"]}
    assert paths >= {"fusion.normalizer", "fusion.rank_constant"}
    assert not any(path.startswith(("fusion.k", "fusion.normalize.")) for path in paths)
    tuned = root / "out" / "tuned.yaml"
    systems = yaml.safe_load(tuned.read_text(encoding="utf-8"))["systems"]
    assert {each["dialect"] for each in systems.values()} == {"elasticsearch"}
    words = ["--to", "elasticsearch", "--datasets", str(root / "datasets"), "--json"]
    for name in systems:
        assert main(["export", str(tuned), "--system", name, *words]) == 0
        assert json.loads(capsys.readouterr().out)["fidelity"] == "exact"


@pytest.mark.parametrize(
    ("system", "lost"), [("two", "blend"), ("none such", "unknown system"), ("one", "elastic")]
)
def test_what_the_engine_cannot_express_is_refused(
    system: str, lost: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = "elastic" if system == "one" else "elasticsearch"
    assert tune(root, "--system", system, "--engine", engine) == 2
    said = capsys.readouterr().out
    assert lost in said
    if system == "two":
        assert all(word in said for word in ("rank_constant", "normalizer", "one", tiny.EXPERIMENT))
