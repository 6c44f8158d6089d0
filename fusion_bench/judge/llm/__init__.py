"""Grades by language models behind an OpenAI-compatible chat endpoint."""
