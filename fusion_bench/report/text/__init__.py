"""A page as text: for the terminal, as Markdown, as a short summary."""
