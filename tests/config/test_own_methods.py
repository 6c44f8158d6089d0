"""Functions and classes of the user: their sources, what they capture, what they are made into."""

import functools
import hashlib
import inspect
import linecache
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from fusion_bench.config.own_methods import describe_own, describe_source, is_own, list_own
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.methods.fuse import Fusion, fusions
from fusion_bench.methods.normalize import normalizers

Lists = Mapping[str, Mapping[str, float]]
FACTOR = {"d1": 2.0}


def plain(lists: Lists, k: int = 60) -> dict[str, float]:
    """Numbers of packages, and names that are its own."""
    return {d: math.sqrt(k) + float(np.sqrt(k)) for each in lists.values() for d in each}


def reads_global(lists: Lists) -> dict[str, float]:
    return {document: FACTOR.get(document, 1.0) for each in lists.values() for document in each}


def calls_global(lists: Lists) -> dict[str, float]:
    return (lambda: plain(lists))()


def holds_array(lists: Lists, table: FloatArray = np.ones(2)) -> dict[str, float]:  # noqa: B008 - a default that no report can state
    return {document: table[0] for each in lists.values() for document in each}


def capture(factor: float) -> Callable[[Lists], dict[str, float]]:
    def inner(lists: Lists) -> dict[str, float]:
        return {document: factor for each in lists.values() for document in each}

    return inner


TWINS = [lambda lists: lists, lambda lists: dict(lists)]


class Greatest(Fusion):
    """``greatest_of_all``: the greatest score of any source."""

    method: str = "greatest_of_all"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        return np.asarray(np.nanmax(runs.scores, axis=0))


class Weighed(Fusion):
    """``weighed``: has a value of this module."""

    factors: ClassVar[Mapping[str, float]] = FACTOR
    method: str = "weighed"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        return np.full(len(runs.documents), self.factors["d1"])


def decorate(function: Callable[[Lists], Lists]) -> Callable[[Lists], Lists]:
    @functools.wraps(function)
    def outer(lists: Lists) -> Lists:
        return function(lists)

    return outer


@decorate
def decorated(lists: Lists) -> Lists:
    return lists


class Derived(Greatest):
    """``derived``: of another class of this module."""

    method: str = "derived"


@pytest.mark.parametrize("own", [plain, Greatest])
def test_what_has_a_source_is_named_by_its_digest(own: Any) -> None:  # noqa: ANN401 - both kinds
    digest = hashlib.sha256(inspect.getsource(own).encode()).hexdigest()
    assert describe_source(own) == describe_source(own) == f"source sha256:{digest}"


@pytest.mark.parametrize(
    ("own", "captured"),
    [
        (reads_global, "FACTOR"),
        (calls_global, "plain"),
        (holds_array, "table"),
        (capture(1.0), "factor"),
        (Derived, "Greatest"),
        (Weighed, "FACTOR"),
        (decorated, "function"),
        (functools.partial(plain, k=1), "partial"),
        (TWINS[0], "no source"),
        (max, "no source"),
        (eval("lambda lists: {}"), "no source"),  # noqa: S307 - code of no file
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_what_its_source_does_not_hold_is_not_replayable(own: Any, captured: str) -> None:  # noqa: ANN401 - many kinds
    first, second = describe_source(own), describe_source(own)
    assert first.startswith("not replayable (")
    assert captured in first
    assert first != second, "two of the same source may give different numbers"


def test_what_was_edited_since_it_was_read_has_no_source(tmp_path: Path) -> None:
    path, names = tmp_path / "module.py", {"__name__": "module"}
    path.write_text("def edited(lists):\n    return 1\n")
    exec(compile(path.read_text(), str(path), "exec"), names)  # noqa: S102 - as an import does
    assert describe_source(names["edited"]).startswith("source sha256:")  # type: ignore[arg-type]
    path.write_text("def edited(lists):\n    return 22\n")
    assert "no source" in describe_source(names["edited"])  # type: ignore[arg-type]


def test_a_class_of_a_notebook_has_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "class Cell:\n    def fuse(self, runs):\n        return runs\n\nx = 1\n"
    monkeypatch.setitem(linecache.cache, "<cell>", (len(text), None, text.splitlines(True), ""))
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "<cell>", "exec"), names)  # noqa: S102 - as a notebook does
    digest = hashlib.sha256(text.partition("\n\n")[0].encode()).hexdigest()
    assert describe_source(names["Cell"]) == f"source sha256:{digest}"


def test_defaults_are_the_parameters_of_a_report() -> None:
    built = fusions.build({"method": plain, "k": 20})
    assert built.model_dump() == {
        "method": "plain",
        "k": 20,
        "distribution": describe_source(plain),
    }
    assert fusions.build(built.model_dump()) == built
    assert list(list_own({"fusion": built.model_dump()})) == [("plain", describe_source(plain))]
    with pytest.raises(ConfigError, match="k: "):
        fusions.build({"method": plain, "k": "x"})
    with pytest.raises(ConfigError, match="sha256:0123"):
        fusions.build({"method": "plain", "distribution": "source sha256:0123"})


def test_methods_of_one_name_are_told_apart_and_in_no_list() -> None:
    one, other = (fusions.build({"method": capture(factor)}) for factor in (1.0, 2.0))
    for built in (one, other):
        assert type(fusions.build(built.model_dump())) is type(built)
    normalizers.add_own(halved)
    assert "halved" not in {**normalizers.load_all(), **normalizers.load_built_in()}
    assert normalizers.build("halved").method == "halved"


def halved(scores: FloatArray) -> FloatArray:
    return scores / 2


def rrf(lists: Lists) -> Lists:
    return lists


def Convex(lists: Lists) -> Lists:  # noqa: N802 - as a user may call it
    return lists


def two(lists: Lists, weights: Lists) -> Lists:
    return {**lists, **weights}


def taken(lists: Lists, method: str = "x") -> Lists:
    return {method: lists["a"]}


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        (rrf, "'rrf'"),
        (Convex, "'Convex'"),
        (two, "two(lists, weights)"),
        (taken, "'method'"),
        (dict, "Fusion"),
        (Fusion, "method"),
    ],
)
def test_what_cannot_be_a_fusion_is_refused(own: Any, problem: str) -> None:  # noqa: ANN401 - many kinds
    with pytest.raises(ConfigError) as error:
        fusions.build({"method": own})
    assert problem in str(error.value)


def test_functions_are_no_names() -> None:
    assert [is_own(each) for each in (plain, Greatest, max, "rrf", Greatest())] == [
        *(True, True, True),
        *(False, False),
    ]
    assert describe_own({"a": [plain, 1]}) == {"a": ["plain", 1]}
