"""nfcorpus as BEIR publishes it: the counts that ir_datasets states come out."""

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests.parity.data import parity_data

pytestmark = pytest.mark.parity


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    """What ir_datasets states of beir/nfcorpus and its test queries."""
    library = pytest.importorskip("ir_datasets")
    whole, test = (library.load(f"beir/nfcorpus{part}").metadata() for part in ("", "/test"))
    return {
        "queries": test["queries"]["count"],
        "unjudged_queries": whole["queries"]["count"] - test["queries"]["count"],
        "judgments": test["qrels"]["count"],
        "documents": whole["docs"]["count"],
    }


def test_nfcorpus(
    counts: dict[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"beir:{parity_data('nfcorpus')}"
    words = ("dataset", "add", place, "--split", "test", "--out", str(tmp_path / "out"), "--json")
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == counts
