"""A verdict as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from fusion_bench.gate.pages.check_texts import (
    describe_check,
    describe_query_check,
)
from fusion_bench.gate.records.check_result import GuardResult
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.verdict import ACCEPTED, CheckStatus
from fusion_bench.util.formatting import escape_control_chars


def render_junit(verdict: GateVerdict) -> str:
    """JUnit XML: one test case a check, guard and golden query.

    A status that blocks is a failure; an error is an error. A warning is skipped with its reason.
    """
    title = escape_control_chars(f"fusion-bench gate {verdict.experiment}")
    suite = ET.Element("testsuite", name=title)
    if verdict.refusals:
        _add_case(suite, "baseline", "comparable", "; ".join(verdict.refusals), "error")
    if verdict.unreproduced:
        kind = None if verdict.is_reproduced else "failure"
        _add_case(suite, "baseline", "reproduced", ", ".join(verdict.unreproduced), kind)
    for check in verdict.checks:
        kind = "error" if check.error is not None else _find_kind(check.status, verdict)
        _add_case(suite, check.collection, check.name, describe_check(check, verdict), kind)
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


def _find_kind(status: CheckStatus, verdict: GateVerdict) -> str | None:
    if status in verdict.blocking:
        return "failure"
    return None if status in ACCEPTED else "skipped"


def _add_case(suite: ET.Element, group: str, name: str, text: str, kind: str | None) -> None:
    """Add a test case; ``kind`` says how it failed, None that it passed."""
    group, name, text = map(escape_control_chars, (group, name, text))
    case = ET.SubElement(suite, "testcase", classname=group, name=name)
    if kind is not None:
        ET.SubElement(case, kind, message=text)
    ET.SubElement(case, "system-out").text = text
