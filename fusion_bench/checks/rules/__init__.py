"""The rules of lint, a file a family; ``docs/reference/lint.md`` has a section for each rule."""
