"""The schemas that the package ships are current, and what the commands write satisfies them."""

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.cli.dataset import RECORDS, render_schema
from fusion_bench.io import outputs
from tests import tiny
from tests.gate import cases
from tests.shipped_schemas import SHIPPED, check_record, shipped_text

Capture = pytest.CaptureFixture[str]


def print_record(capsys: Capture, *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == code
    return capsys.readouterr().out


def test_every_record_has_a_schema_and_no_other_file_lies_there() -> None:
    found = {path.name for path in SHIPPED.iterdir()} - {outputs.RECORD}  # which git ignores
    assert found == {f"{record}.json" for record in RECORDS}


@pytest.mark.parametrize("record", RECORDS)
def test_the_shipped_schema_is_current(record: str, capsys: Capture) -> None:
    wanted = render_schema(record)
    assert shipped_text(record) == wanted, (
        f"fusion_bench/schemas/{record}.json is not what the record's model says: run "
        "'make schemas', look at the difference, raise the format version if a key changed"
    )
    assert main(["dataset", "schema", record]) == 0
    assert capsys.readouterr().out == wanted


def test_a_report_satisfies_its_schema(root: Path, capsys: Capture) -> None:
    check_record("report", print_record(capsys, "eval", tiny.EXPERIMENT, "--no-plots"))
    lists = [f"{name}=datasets/tiny/{name}.trec" for name in "ab"]
    qrels = ["--qrels", "datasets/tiny/qrels.txt", "--no-plots"]
    started = json.loads(print_record(capsys, "try", *lists, *qrels))
    check_record("report", json.dumps(started["report"]))
    written = root / "reports/e/report.json"
    check_record("report", written.read_text(encoding="utf-8"))


def test_a_baseline_and_verdicts_satisfy_their_schemas(mine: Path, capsys: Capture) -> None:
    refused = print_record(capsys, "gate", cases.EXPERIMENT, code=2)
    assert json.loads(refused)["refusals"]
    check_record("gate", refused)
    baseline = cases.renew_baseline(mine)
    check_record("baseline", baseline.read_text(encoding="utf-8"))
    check_record("gate", print_record(capsys, "gate", cases.EXPERIMENT))
    written = next(mine.glob("reports/*/gate.json"))
    check_record("gate", written.read_text(encoding="utf-8"))


def test_schemas_are_written_into_a_folder(tmp_path: Path, capsys: Capture) -> None:
    assert main(["dataset", "schema", "--out", str(tmp_path / "new")]) == 0
    assert str(tmp_path / "new") in capsys.readouterr().out
    written = {
        path.stem: path.read_text(encoding="utf-8") for path in (tmp_path / "new").glob("*.json")
    }
    assert written == {record: render_schema(record) for record in RECORDS}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name one of report, tuning, gate, baseline"),
        (["gat"], "unknown record 'gat'; did you mean 'gate'?"),
        (["gate", "--out", "x"], "does not go with --out"),
    ],
)
def test_a_record_has_to_be_named(arguments: list[str], says: str, capsys: Capture) -> None:
    assert main(["dataset", "schema", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
