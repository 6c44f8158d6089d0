"""Answers that are paid for once: asked in batches, kept in a file, resumed where they stopped."""
