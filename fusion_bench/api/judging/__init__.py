"""Judges and what they judge: agreement, estimates, sensitivity, and the documents to judge."""
