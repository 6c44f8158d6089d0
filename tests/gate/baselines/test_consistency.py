"""A baseline with a checksum made anew is refused where its parts do not agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.errors import DataError
from fusion_bench.gate.baseline import digest_json
from fusion_bench.gate.baseline_files import read_baseline, write_baseline
from tests.gate.baselines.test_record import baseline

#: Changes the data of a baseline's file in place.
Damage = Callable[[dict[str, Any]], object]


def collection(data: dict[str, Any]) -> dict[str, Any]:
    return data["collections"][0]  # type: ignore[no-any-return]


def anchor(data: dict[str, Any]) -> dict[str, Any]:
    return data["anchor"]["collections"][0]  # type: ignore[no-any-return]


UNJUDGED = {"share": [0.1, 0.2], "judged_only": {"RR@10": [0.1, 0.2]}, "filled": {}}
CASES: dict[str, tuple[Damage, str]] = {
    "a value too many": (lambda d: collection(d)["values"]["RR@10"].append(0.3), "3 values for 2"),
    "a value too few": (lambda d: collection(d)["values"]["RR@10"].pop(), "1 value for 2 queries"),
    "an edited value": (
        lambda d: collection(d)["values"].update({"RR@10": [0.1, 0.1]}),
        "values.RR@10: their mean is not that",
    ),
    "a value of 5": (lambda d: collection(d)["values"].update({"RR@10": [0.1, 5.0]}), "given 5"),
    "a value of true": (
        lambda d: collection(d)["values"].update({"RR@10": [0.1, True]}),
        "collections.0.values.RR@10.1: input should be a valid number, given True",
    ),
    "an infinite value": (
        lambda d: collection(d)["values"].update({"RR@10": [0.1, float("inf")]}),
        "collections.0.values.RR@10.1: a finite number is needed, given inf",
    ),
    "no values": (lambda d: collection(d)["values"].clear(), "not those of the definitions"),
    "no queries": (lambda d: collection(d).update(queries=[]), "queries: different ids"),
    "a query twice": (lambda d: collection(d).update(queries=["q0", "q0"]), "['q0']"),
    "no digest": (lambda d: collection(d)["digests"].pop("qrels"), "digests: none of qrels"),
    "a collection twice": (
        lambda d: d["collections"].append(collection(d)),
        "collections: different",
    ),
    "no collection": (lambda d: d["collections"].clear(), "collections: different"),
    "no anchor": (lambda d: anchor(d).update(collection="x"), "anchor.collections: no mine"),
    "an anchor's value too many": (
        lambda d: anchor(d)["values"]["RR@10"].append(0.3),
        "anchor.collections: mine: values.RR@10: 3 values",
    ),
    "an anchor of other queries": (
        lambda d: anchor(d).update(queries=["q0", "q7"]),
        "queries: not those of the baseline",
    ),
    "an anchor without a measure": (
        lambda d: (anchor(d)["values"].clear(), anchor(d)["definitions"].clear()),
        "a measure is missing",
    ),
    "a share too many": (
        lambda d: collection(d).update(unjudged={**UNJUDGED, "share": [0.1, 0.1, 0.1]}),
        "unjudged.share: 3 values for 2 queries",
    ),
    "no value over judged documents": (
        lambda d: collection(d).update(unjudged={**UNJUDGED, "judged_only": {"AP": [0.1, 0.2]}}),
        "unjudged.judged_only: a measure is missing",
    ),
    "another configuration": (lambda d: d.update(config={"runs": ["b"]}), "config: not the"),
    "no policy": (lambda d: d.update(policy={}), "policy.checks: is required"),
    "a policy of true": (
        lambda d: d["policy"]["checks"]["RR@10"].update(max_drop=True),
        "policy.checks.RR@10.max_drop: ",
    ),
    "no history": (lambda d: d["history"].clear(), "history: "),
}


@pytest.mark.parametrize(("damage", "says"), CASES.values(), ids=CASES)
def test_parts_that_do_not_agree_are_refused(tmp_path: Path, damage: Damage, says: str) -> None:
    path = tmp_path / "mine.json"
    write_baseline(baseline([0.1, 0.2]), path)
    data = json.loads(path.read_text(encoding="utf-8"))
    damage(data)
    del data["checksum"]
    path.write_text(json.dumps({**data, "checksum": digest_json(data)}), encoding="utf-8")
    with pytest.raises(DataError, match=r"mine\.json: .*--update") as error:
        read_baseline(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)
