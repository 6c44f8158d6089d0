"""The gate warns where ``tune`` looked at its queries."""

from pathlib import Path

import pytest

from fusion_bench.gate.page import build_gate_page
from fusion_bench.gate.result import GateVerdict
from fusion_bench.io.fingerprints import query_digests
from fusion_bench.io.looks import LedgerEntry, update_ledger
from tests.gate.cases import EXPERIMENT, gate_verdict, renew_baseline
from tests.texts import names_in_order
from tests.tiny import edit


def write_look(path: Path, *queries: str) -> None:
    look = LedgerEntry(
        experiment="mine",
        system="live",
        measure="RR@10",
        date="2026-01-01",
        numbers="ab",
        number=1,
        level=0.02,
        queries=query_digests(queries),
    )
    update_ledger(path, lambda looks: [*looks, look])


def warnings(verdict: GateVerdict) -> list[str]:
    return [each.text for each in verdict.data_warnings if each.key == "tuned queries"]


@pytest.mark.parametrize("place", ["datasets/mine/looks.jsonl", "experiments/elsewhere.jsonl"])
def test_looks_at_these_queries_are_a_warning(root: Path, place: str) -> None:
    renew_baseline(root)
    assert warnings(gate_verdict(root)) == []
    if place.startswith("experiments"):
        stated = "tune: {system: live, looks: {file: elsewhere.jsonl}}\ngate:\n"
        edit(root, EXPERIMENT, "gate:\n", stated)
    write_look(root / place, "another")
    assert warnings(gate_verdict(root)) == []
    write_look(root / place, "q1", "q2", "another")
    verdict = gate_verdict(root)
    [text] = warnings(verdict)
    assert names_in_order(text, "1 look at 2 ", "tune on dev")
    assert verdict.exit_code == 0
    findings = [each for part in build_gate_page(verdict).sections for each in part.findings]
    assert ("tuned queries", "warning") in [(each.key, each.tone) for each in findings]
