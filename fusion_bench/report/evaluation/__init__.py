"""The page of an evaluation: tables, findings and warnings from the stored report."""

from fusion_bench.report.evaluation.evaluation_page import build_page as build_page
