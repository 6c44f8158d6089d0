"""The rules of lint, a file a family; ``docs/lint.md`` has a section for each rule."""
