"""The documentation site: the repository's Markdown, and pages made from the code."""
