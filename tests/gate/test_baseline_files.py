"""The committed file: every digit kept, every update remembered, no edit unnoticed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.errors import DataError
from fusion_bench.gate.baseline import Anchor, Baseline, BaselineUpdate, CollectionBaseline
from fusion_bench.gate.baseline_files import read_baseline
from fusion_bench.gate.update import write_baseline
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util.digests import digest_json


def baseline(values: list[float], reason: str = "first", **changed: object) -> Baseline:
    definition = {"method": "RR", "cutoff": 10, "rel": 1, "judged_only": False}
    arm = CollectionBaseline(
        collection="mine",
        version="1",
        digests={"qrels": "a" * 64, "queries": "b" * 64},
        lists={},
        judgments="pooled",
        binary_relevance=1,
        split=None,
        query_type=None,
        queries=tuple(f"q{i}" for i in range(len(values))),
        definitions={"RR@10": definition},
        values={"RR@10": tuple(values)},
    )
    change = BaselineUpdate(
        updated_at="2026-01-01T00:00:00+00:00",
        reasons=(reason,),
        version="0",
        config_sha256=digest_json({"runs": ["a"]}),
        means={"mine": {"RR@10": exact_mean(np.array(values))}},
    )
    anchor = Anchor(
        updated_at="2026-01-01T00:00:00+00:00", reason=reason, system="live", collections=(arm,)
    )
    given = {
        "engine": 1,
        "experiment": "mine",
        "system": "live",
        "config": {"runs": ["a"]},
        "policy": {"checks": {"RR@10": {"max_drop": 0.01}}},
        "seed": 7,
        "v2_enabled": True,
        "ties": "trec",
        "collections": (arm,),
        "anchor": anchor,
        "history": (change,),
    }
    return Baseline.model_validate(given | changed)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.text(min_size=1).filter(str.strip))
def test_every_digit_and_every_character_survives(
    tmp_path_factory: pytest.TempPathFactory, values: list[float], reason: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "baseline.json"
    if any("\ud800" <= c <= "\udfff" for c in reason):
        return
    kept = baseline(values, reason)
    write_baseline(kept, path)
    again = read_baseline(path)
    assert again == kept.with_checksum()
    assert again is not None
    assert [v.hex() for v in again.collections[0].values["RR@10"]] == [v.hex() for v in values]


@pytest.mark.parametrize(
    ("old", "new"),
    [('"RR@10": [0.1, 0.2]', '"RR@10": [0.1, 0.1]'), ("first", "fairest"), ("live", "love")],
)
def test_an_edit_by_hand_is_refused(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "mine.json"
    write_baseline(baseline([0.1, 0.2]), path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DataError, match=r"json: edited .* --update"):
        read_baseline(path)
    with pytest.raises(DataError, match=r"x\.yaml --baseline-file \S+ --update"):
        read_baseline(path, Path("e/x.yaml"))


def test_a_change_of_layout_alone_is_no_edit(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    write_baseline(baseline([0.1, 0.2]), path)
    data = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(dict(reversed(data.items()))), encoding="utf-8")
    assert read_baseline(path) == baseline([0.1, 0.2]).with_checksum()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not a JSON baseline"),
        ("[1, 2]", "not a baseline of fusion-bench"),
        ('{"format": "fusion-bench-report"}', "not a baseline of fusion-bench"),
        ('{"format": "fusion-bench-baseline", "format_version": 9}', "baseline format 9"),
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=complaint):
        read_baseline(path)


def test_a_sealed_file_that_lacks_a_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    write_baseline(baseline([0.1]).model_copy(update={"ties": None}), path)
    with pytest.raises(DataError, match=r"json: ties: .*--update"):
        read_baseline(path)


#: Changes the data of a baseline's file in place.
Damage = Callable[[dict[str, Any]], object]


def collection(data: dict[str, Any]) -> dict[str, Any]:
    return data["collections"][0]  # type: ignore[no-any-return]


def anchor(data: dict[str, Any]) -> dict[str, Any]:
    return data["anchor"]["collections"][0]  # type: ignore[no-any-return]


UNJUDGED = {"share": [0.1, 0.2], "judged_only": {"RR@10": [0.1, 0.2]}, "filled": {}}
CASES: dict[str, tuple[Damage, str]] = {
    "a value too many": (lambda d: collection(d)["values"]["RR@10"].append(0.3), "3 values for 2"),
    "an edited value": (
        lambda d: collection(d)["values"].update({"RR@10": [0.1, 0.1]}),
        "values.RR@10: their mean",
    ),
    "a value of 5": (lambda d: collection(d)["values"].update({"RR@10": [0.1, 5.0]}), "given 5"),
    "a value of true": (
        lambda d: collection(d)["values"].update({"RR@10": [0.1, True]}),
        "values.RR@10.1: input should",
    ),
    "no values": (lambda d: collection(d)["values"].clear(), "of the definitions"),
    "no queries": (lambda d: collection(d).update(queries=[]), "queries: different ids"),
    "a query twice": (lambda d: collection(d).update(queries=["q0", "q0"]), "['q0']"),
    "no digest": (lambda d: collection(d)["digests"].pop("qrels"), "digests: none of qrels"),
    "a collection twice": (
        lambda d: d["collections"].append(collection(d)),
        "collections: different",
    ),
    "no collection": (lambda d: d["collections"].clear(), "collections: different"),
    "no anchor": (lambda d: anchor(d).update(collection="x"), "anchor.collections: no mine"),
    "anchor: 3 values": (
        lambda d: anchor(d)["values"]["RR@10"].append(0.3),
        "mine: values.RR@10: 3 values",
    ),
    "anchor: other queries": (
        lambda d: anchor(d).update(queries=["q0", "q7"]),
        "queries: not those",
    ),
    "anchor: no measure": (
        lambda d: (anchor(d)["values"].clear(), anchor(d)["definitions"].clear()),
        "a measure is missing",
    ),
    "a share too many": (
        lambda d: collection(d).update(unjudged={**UNJUDGED, "share": [0.1, 0.1, 0.1]}),
        "unjudged.share: 3 values",
    ),
    "no judged value": (
        lambda d: collection(d).update(unjudged={**UNJUDGED, "judged_only": {"AP": [0.1, 0.2]}}),
        "unjudged.judged_only: a measure",
    ),
    "another configuration": (lambda d: d.update(config={"runs": ["b"]}), "config: not the"),
    "no policy": (lambda d: d.update(policy={}), "policy.checks: is required"),
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
