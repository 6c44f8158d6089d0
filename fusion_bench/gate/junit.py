"""A decision as JUnit XML, for whatever reads that."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from fusion_bench.gate.report import bound, golden_words, guard_words, sentence
from fusion_bench.gate.result import CheckResult, GateVerdict
from fusion_bench.util.formatting import escape_control_chars

__all__ = ["render_junit"]


def render_junit(result: GateVerdict) -> str:
    """JUnit XML: one test case a check, guard and golden query.

    A regression is a failure; what could not be checked is an error; what is inconclusive is a
    failure where the policy blocks, and otherwise skipped with its reason.
    """
    suite = ET.Element(
        "testsuite", name=f"fusion-bench gate {escape_control_chars(result.experiment)}"
    )
    if result.refusals:
        _add_case(suite, "baseline", "comparable", error="; ".join(result.refusals))
    for check in result.checks:
        _add_check(suite, check, blocks=result.on_inconclusive == "fail")
    for guard in result.guards:
        broken = None if guard.holds or guard.error is not None else guard_words(guard)
        name = f"guard {guard.measure} −{guard.max_loss:g}"
        _add_case(
            suite, guard.collection, name, error=guard.error, failure=broken, out=bound(guard)
        )
    for golden in result.golden:
        broken = None if golden.holds or golden.error is not None else golden_words(golden)
        name = f"golden {golden.query} {golden.document}"
        _add_case(
            suite, golden.collection, name, error=golden.error, failure=broken, out=bound(golden)
        )
    for kind in ("failure", "error", "skipped"):
        plural = kind if kind == "skipped" else f"{kind}s"
        suite.set(plural, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite.findall("testcase"))))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_check(suite: ET.Element, check: CheckResult, *, blocks: bool) -> None:
    words = sentence(check)
    unclear = check.status == "inconclusive" and check.error is None
    _add_case(
        suite,
        check.collection,
        check.name,
        error=words if check.error is not None else None,
        failure=words if check.status == "regressed" or (unclear and blocks) else None,
        skipped=words if unclear and not blocks else None,
        out=words,
    )


def _add_case(
    suite: ET.Element, group: str, name: str, *, out: str | None = None, **kinds: str | None
) -> None:
    case = ET.SubElement(
        suite, "testcase", classname=escape_control_chars(group), name=escape_control_chars(name)
    )
    for kind, message in kinds.items():
        if message is not None:
            ET.SubElement(case, kind, message=escape_control_chars(message))
    if out is not None:
        ET.SubElement(case, "system-out").text = escape_control_chars(out)
