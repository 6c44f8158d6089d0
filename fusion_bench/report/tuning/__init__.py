"""The page of a tuning run: tables, findings and a recommendation from the stored record."""

from fusion_bench.report.tuning.tuning_page import build_page as build_page
