"""A verdict as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from fusion_bench.gate.report import describe_check, describe_query_check
from fusion_bench.gate.result import CheckResult, GateVerdict, GuardResult, QueryCheck
from fusion_bench.util.formatting import escape_control_chars


def render_junit(verdict: GateVerdict) -> str:
    """JUnit XML: one test case a check, guard and golden query.

    A regression is a failure; an error is an error. An inconclusive check is a failure where the
    policy blocks, and otherwise skipped with its reason.
    """
    title = escape_control_chars(f"fusion-bench gate {verdict.experiment}")
    suite = ET.Element("testsuite", name=title)
    if verdict.refusals:
        _add_case(suite, "baseline", "comparable", error="; ".join(verdict.refusals))
    for check in verdict.checks:
        _add_check(suite, check, blocks=verdict.on_inconclusive == "fail")
    for query_check in verdict.query_checks:
        _add_query_check(suite, query_check)
    for kind in ("failure", "error", "skipped"):
        plural = kind if kind == "skipped" else f"{kind}s"
        suite.set(plural, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite.findall("testcase"))))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_check(suite: ET.Element, check: CheckResult, *, blocks: bool) -> None:
    text = describe_check(check)
    is_unclear = check.status == "inconclusive" and check.error is None
    _add_case(
        suite,
        check.collection,
        check.name,
        error=text if check.error is not None else None,
        failure=text if check.status == "regressed" or (is_unclear and blocks) else None,
        skipped=text if is_unclear and not blocks else None,
        out=text,
    )


def _add_query_check(suite: ET.Element, check: QueryCheck) -> None:
    if isinstance(check, GuardResult):
        name = f"guard {check.measure} −{check.max_loss:g}"
    else:
        name = f"golden {check.query} {check.document}"
    text = describe_query_check(check)
    failure = None if check.holds or check.error is not None else text
    _add_case(suite, check.collection, name, error=check.error, failure=failure, out=text)


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
