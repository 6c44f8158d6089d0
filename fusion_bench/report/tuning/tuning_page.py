"""The page of a tuning run."""

from __future__ import annotations

from collections.abc import Sequence

from fusion_bench.report.judging.judge_section import drop_judge_findings, judge_section
from fusion_bench.report.lint_page import lint_section
from fusion_bench.report.page import Figure, Page, Section, YamlBlock
from fusion_bench.report.tuning.findings import tuning_findings
from fusion_bench.report.tuning.tables import tuning_tables
from fusion_bench.report.tuning_records.tuning_report import TuningReport


def build_page(
    report: TuningReport, figures: Sequence[Figure] = (), tuned: str = "tuned.yaml"
) -> Page:
    """The page of a tuning run: the verdict, what it rests on, tables and figures.

    Args:
        report: What to show.
        figures: The figures beside the page; empty = none.
        tuned: File of the tuned experiment, as commands name it.
    """
    verdict, *findings = tuning_findings(report, tuned)
    gains, *tables = tuning_tables(report)
    results = Section(
        summary=f"{report.dataset}: {report.measure}; {len(report.trials):,} trials; "
        f"split: {report.split}",
        findings=drop_judge_findings(findings),
        parts=(gains, *figures[:1], *tables, *figures[1:]),
    )
    systems = Section(
        title="The systems",
        parts=(
            YamlBlock("Default", report.default),
            YamlBlock(f"Tuned (trial {report.choice.trial})", report.choice.config),
        ),
        is_folded=True,
    )
    created = report.provenance.created
    provenance = Section(
        "Provenance",
        summary=f"{report.provenance.source}, {created}; {report.dataset}, {report.split}; "
        f"data {report.fingerprint[:12]}; "
        f"{len(report.trials):,} trials",
        facts=_facts(report),
    )
    title = f"{report.name}: tuning {report.system} on {report.dataset}"
    first = judge_section(() if report.data is None else report.data.warnings)
    sections = (*first, *lint_section(report.lint), results, systems)
    return Page(title, sections, verdict, provenance)


def _facts(report: TuningReport) -> dict[str, str]:
    seed = "" if report.split_seed is None else f", split seed {report.split_seed!r}"
    versions, overrides = report.provenance.versions.items(), report.provenance.overrides
    return {
        "dataset": report.dataset,
        "fingerprint": report.fingerprint,
        "split": f"{report.split}{seed}",
        "trials run": f"{len(report.trials):,}",
        **{key: str(value) for key, value in report.settings.items() if value is not None},
        **({"--set": ", ".join(overrides)} if overrides else {}),
        "created": report.provenance.created,
        "versions": ", ".join(f"{name} {version}" for name, version in versions),
    }
