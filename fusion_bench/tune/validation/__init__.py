"""Splits, cross-validation, selection and the verdict on held-out queries."""
