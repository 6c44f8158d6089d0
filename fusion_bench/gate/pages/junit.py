"""A verdict as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from fusion_bench.gate.pages.check_texts import describe_check, describe_query_check
from fusion_bench.gate.result import GateVerdict, GuardResult
from fusion_bench.util.formatting import escape_control_chars


def render_junit(verdict: GateVerdict) -> str:
    """JUnit XML: one test case a check, guard and golden query.

    A regression is a failure; an error is an error. An inconclusive check is a failure where the
    policy blocks, and otherwise skipped with its reason.
    """
    title = escape_control_chars(f"fusion-bench gate {verdict.experiment}")
    suite = ET.Element("testsuite", name=title)
    if verdict.refusals:
        _add_case(suite, "baseline", "comparable", "; ".join(verdict.refusals), "error")
    unclear = "failure" if verdict.on_inconclusive == "fail" else "skipped"
    kinds = {"pass": None, "regressed": "failure", "inconclusive": unclear}
    for check in verdict.checks:
        kind = kinds[check.status] if check.error is None else "error"
        _add_case(suite, check.collection, check.name, describe_check(check), kind)
    for item in verdict.query_checks:
        name = (
            f"guard {item.measure} −{item.max_loss:g}"
            if isinstance(item, GuardResult)
            else f"golden {item.query} {item.document}"
        )
        kind = "failure" if item.is_violated else None if item.error is None else "error"
        _add_case(suite, item.collection, name, describe_query_check(item), kind)
    for kind, key in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(key, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite)))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: ET.Element, group: str, name: str, text: str, kind: str | None) -> None:
    """Add a test case; ``kind`` says how it failed, None that it passed."""
    group, name, text = map(escape_control_chars, (group, name, text))
    case = ET.SubElement(suite, "testcase", classname=group, name=name)
    if kind is not None:
        ET.SubElement(case, kind, message=text)
    ET.SubElement(case, "system-out").text = text
