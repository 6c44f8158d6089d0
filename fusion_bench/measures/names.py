"""Measure names, read as ir_measures writes them: ``nDCG@10``, ``RR(rel=2)@10``, ``AP``.

The parser is our own, because importing ir_measures costs more than a small evaluation does. A
name that the engine does not compute is handed to ir_measures, and only then is it imported.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias, TypeGuard, cast

from fusion_bench.errors import ConfigError
from fusion_bench.measures.ir_measures_backend import canonical, judged_only_name

__all__ = ["Dcg", "Kind", "Measure", "parse_measure"]

Kind: TypeAlias = Literal["nDCG", "RR", "R", "AP", "P", "Success", "Judged", "external"]
Dcg: TypeAlias = Literal["log2", "exp-log2"]
Options: TypeAlias = dict[str, object]

#: What may stand in the brackets of each measure of the engine, beside ``cutoff``.
OPTIONS: Final[dict[str, frozenset[str]]] = {
    "nDCG": frozenset({"dcg", "judged_only"}),
    "Judged": frozenset({"judged_only"}),
    **dict.fromkeys(("RR", "R", "AP", "P", "Success"), frozenset({"rel", "judged_only"})),
}
#: The other names that ir_measures knows them by.
ALIASES: Final = {"NDCG": "nDCG", "MRR": "RR", "Recall": "R", "MAP": "AP", "Precision": "P"}
CAPITALS: Final = {name.lower(): name for name in OPTIONS}
NEEDS_CUTOFF: Final = frozenset({"R", "P", "Success"})
DCG: Final = ("log2", "exp-log2")
FORM: Final = re.compile(
    r"\s*(?P<head>\w+)\s*(?:\((?P<options>.*)\))?\s*(?:@\s*(?P<cutoff>\S+))?\s*", re.DOTALL
)


@dataclass(frozen=True)
class Measure:
    """One measure of one ranked list.

    Attributes:
        kind: Which formula; ``external`` = ir_measures computes it, going by ``name``.
        cutoff: Only the first ``cutoff`` places count; None = the whole list.
        rel: The grade from which a document counts as relevant in a binary measure.
        dcg: Gain of nDCG: the grade, or 2^grade − 1.
        judged_only: Unjudged documents are taken out of the list before anything is counted.
        name: The canonical name, the same for every spelling of the same measure.
    """

    kind: Kind
    cutoff: int | None
    rel: int
    dcg: Dcg
    judged_only: bool
    name: str

    @property
    def binary(self) -> bool:
        """Whether grades matter only as "at least ``rel``" or less."""
        return "rel" in OPTIONS.get(self.kind, ())

    def with_judged_only(self) -> Measure:
        """The same measure over judged documents only."""
        if self.judged_only:
            return self
        if self.kind == "external":
            return replace(self, judged_only=True, name=judged_only_name(self.name))
        other = replace(self, judged_only=True)
        return replace(other, name=_name(other, show_rel="rel=" in self.name))

    def __str__(self) -> str:
        return self.name


class _Parsed(NamedTuple):
    kind: Kind
    options: Options


def parse_measure(text: str, *, binary_relevance: int = 1, where: str = "") -> Measure:
    """Read a measure's name.

    Args:
        text: Such as ``nDCG(dcg='exp-log2')@10``.
        binary_relevance: Grade from which binary measures without an own ``rel`` count. Where it
            is not 1, the name of every binary measure says its ``rel``.
        where: Prefix of messages that says where the name stands.

    Raises:
        ConfigError: A measure of ours with an option, a value or a cutoff that it does not take.
        UnknownNameError: Neither our name nor one that ir_measures can compute.
    """
    prefix = f"{where}: " if where else ""
    if isinstance(binary_relevance, bool) or binary_relevance < 1:
        raise ConfigError(f"{prefix}binary_relevance must be at least 1, not {binary_relevance}")
    try:
        parsed = _parse(text)
        if parsed is None:
            name, judged_only = canonical(text, binary_relevance, where)
            return Measure("external", None, 1, "log2", judged_only, name)
        return _build(parsed, binary_relevance)
    except ValueError as error:
        raise ConfigError(f"{prefix}cannot use measure {text!r}: {error}") from error


def _parse(text: str) -> _Parsed | None:
    """Kind and options, or None where the name is for ir_measures to read."""
    match = FORM.fullmatch(text)
    head = match["head"] if match else ""
    kind = ALIASES.get(head, head)
    if match is None or kind not in OPTIONS:
        if head.lower() in CAPITALS:
            raise ValueError(f"names distinguish capitals: {CAPITALS[head.lower()]!r} is meant")
        return None
    options = _options(match["options"] or "")
    if match["cutoff"] is not None:
        if "cutoff" in options:
            raise ValueError("the cutoff is given twice")
        options["cutoff"] = _literal(match["cutoff"])
    if kind == "nDCG" and "gains" in options:
        return None  # own gains are beyond the engine
    return _Parsed(cast("Kind", kind), options)


def _options(text: str) -> Options:
    """``rel=2, judged_only=True`` as a mapping."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{text!r} is not a list of options such as rel=2") from error
    if not isinstance(call, ast.Call) or call.args:
        raise ValueError(f"options are named, as in (rel=2); given: ({text})")
    return {str(option.arg): _literal(ast.unparse(option.value)) for option in call.keywords}


def _literal(text: str) -> object:
    try:
        return cast("object", ast.literal_eval(text))
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{text!r} is neither a number nor a quoted text") from error


def _integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _build(parsed: _Parsed, binary_relevance: int) -> Measure:
    """The measure, once every option is known to be allowed."""
    kind, options = parsed
    allowed = OPTIONS[kind] | {"cutoff"}
    for key in options:
        if key not in allowed:
            raise ValueError(f"{kind} has no option {key!r} (known: {', '.join(sorted(allowed))})")
    cutoff = options.get("cutoff")
    if cutoff is not None and (not _integer(cutoff) or cutoff < 1):
        raise ValueError(f"the cutoff must be a whole number from 1, not {cutoff!r}")
    if cutoff is None and kind in NEEDS_CUTOFF:
        raise ValueError(f"{kind} needs a cutoff, such as {kind}@10")
    rel = options.get("rel", binary_relevance if "rel" in allowed else 1)
    if not _integer(rel) or rel < 1:
        raise ValueError(f"rel must be a whole number from 1, not {rel!r}")
    dcg = options.get("dcg", "log2")
    if dcg not in DCG:
        raise ValueError(f"dcg must be one of {', '.join(map(repr, DCG))}, not {dcg!r}")
    judged_only = options.get("judged_only", False)
    if not isinstance(judged_only, bool):
        # A user's wrong word, not a caller's wrong type.
        raise ValueError(f"judged_only must be True or False, not {judged_only!r}")  # noqa: TRY004
    measure = Measure(kind, cutoff, rel, cast("Dcg", dcg), judged_only, "")
    # Beside a binary_relevance of 2, RR(rel=1) must not be shortened to RR: read again, that
    # name would mean rel=2.
    return replace(measure, name=_name(measure, show_rel=rel != 1 or binary_relevance != 1))


def _name(measure: Measure, *, show_rel: bool) -> str:
    """The name as ir_measures prints it, options in one fixed order."""
    options = []
    if measure.binary and show_rel:
        options.append(f"rel={measure.rel}")
    if measure.dcg != "log2":
        options.append(f"dcg={measure.dcg!r}")
    if measure.judged_only:
        options.append("judged_only=True")
    brackets = f"({','.join(options)})" if options else ""
    at = "" if measure.cutoff is None else f"@{measure.cutoff}"
    return f"{measure.kind}{brackets}{at}"
