"""Reports: tables, findings and figures, for the terminal and as Markdown."""
