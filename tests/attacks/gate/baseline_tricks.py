"""Tricks with the file of the baseline."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fusion_bench.util.digests import digest_json
from tests.attacks.gate.trick import EXPERIMENT_TEXT, SEALED, Trick, lines
from tests.attacks.project import BASELINE, EXPERIMENT, GATE
from tests.edits import Edit, folder, gone, link, text
from tests.gate import cases


def stored(change: Callable[[dict[str, Any]], object], *, is_sealed: bool = True) -> Edit:
    """Another baseline, with a checksum made anew unless ``is_sealed`` is false."""

    def spoil(root: Path) -> None:
        path = root / BASELINE
        data = json.loads(path.read_text(encoding="utf-8"))
        change(data)
        if is_sealed:
            del data["checksum"]
            data["checksum"] = digest_json(data)
        path.write_text(json.dumps(data), encoding="utf-8")

    return spoil


def other_baseline(**changed: str) -> Edit:
    def spoil(root: Path) -> None:
        other = root / "other"
        cases.make_project(other, mine=EXPERIMENT_TEXT)
        name = changed.get("experiment", EXPERIMENT)
        content = EXPERIMENT_TEXT.replace("live", changed.get("system", "live"))
        content = content.replace("[a]}", f"[{changed.get('runs', 'a')}]}}")
        (other / name).write_text(content, encoding="utf-8")
        made = cases.renew_baseline(other, name=name)
        shutil.copyfile(made, root / BASELINE)
        shutil.rmtree(other)

    return spoil


def _set_values(data: dict[str, Any], change: Callable[[list[float]], list[float]]) -> None:
    record = data["collections"][0]
    record["values"]["RR@10"] = change(record["values"]["RR@10"])


def lower_all(data: dict[str, Any], value: float = 0.25) -> None:
    """The values of list b, with the means of the history, so that all parts agree."""
    record, newest = data["collections"][0], data["history"][-1]
    for name in ("RR@10", "P@1"):
        record["values"][name] = [value] * cases.QUERIES
        newest["means"]["mine"][name] = value


def _drop_losers(data: dict[str, Any]) -> None:
    """Only the queries on which list b is as good, in all parts."""
    for record in (data["collections"][0], data["anchor"]["collections"][0]):
        kept = [i for i, query in enumerate(record["queries"]) if int(query[1:]) % 4 == 0]
        record["queries"] = [record["queries"][i] for i in kept]
        for name, column in record["values"].items():
            record["values"][name] = [column[i] for i in kept]
        if record.get("unjudged"):
            record["unjudged"]["share"] = [record["unjudged"]["share"][i] for i in kept]


BASELINES: Final = [
    Trick("no baseline", gone(BASELINE), says=("no baseline at", "--update --reason")),
    Trick("an empty baseline", text(BASELINE, ""), says=("not a JSON baseline",)),
    Trick(
        "a truncated baseline",
        lines(BASELINE, lambda rows: rows[: len(rows) // 2]),
        says=("not a JSON baseline",),
    ),
    Trick("a folder as the baseline", folder(BASELINE), says=("mine.json",)),
    Trick("a device as the baseline", link(BASELINE, "/dev/null"), says=("mine.json",)),
    Trick(
        "an edited value",
        stored(lambda d: _set_values(d, lambda row: [0.2, *row[1:]]), is_sealed=False),
        says=("checksum does not match",),
    ),
    Trick(
        "an edited policy",
        stored(lambda d: d["policy"]["checks"]["RR@10"].update(max_drop=0.9), is_sealed=False),
        says=("checksum does not match",),
    ),
    Trick(
        "a value too few, with a new checksum",
        stored(lambda d: _set_values(d, lambda row: row[1:])),
        says=("59 values for 60 queries",),
    ),
    Trick(
        "a value too many, with a new checksum",
        stored(lambda d: _set_values(d, lambda row: [*row, 0.0])),
        says=("61 values for 60 queries",),
    ),
    Trick(
        "a lower value, with a new checksum",
        stored(lambda d: _set_values(d, lambda row: [0.2, *row[1:]])),
        says=("not that of the newest update",),
    ),
    Trick(
        "lower values and means, with a new checksum",
        stored(lower_all),
        says=("does not reproduce",),
    ),
    Trick("fewer queries, with a new checksum", stored(_drop_losers), says=("queries changed",)),
    Trick(
        "another configuration, with a new checksum",
        stored(lambda d: d["config"].update(runs=["b"])),
        says=("config: not the configuration",),
    ),
    Trick(
        "another measure's definition, with a new checksum",
        stored(lambda d: d["collections"][0]["definitions"]["RR@10"].update(cutoff=1)),
        says=("definitions",),
    ),
    Trick(
        "an earlier format",
        stored(lambda d: d.update(format_version=1)),
        says=("baseline format 1", "--anchor --reason"),
    ),
    Trick(
        "a later format",
        stored(lambda d: d.update(format_version=99)),
        says=("baseline format 99",),
    ),
    Trick(
        "another engine version",
        stored(lambda d: d.update(engine=0)),
        says=("engine version",),
    ),
    Trick(
        "the baseline of another experiment",
        other_baseline(experiment="experiments/other.yaml", runs="b"),
        says=(*SEALED, "experiment other → mine"),
    ),
    Trick(
        "the baseline of another system",
        other_baseline(system="other", runs="b"),
        says=(*SEALED, "system other → live"),
    ),
    Trick(
        "`--baseline-file` with a report",
        text("report.json", '{"format": "fusion-bench-report"}'),
        arguments=(*GATE, "--baseline-file", "report.json"),
        says=("not a baseline",),
    ),
]
