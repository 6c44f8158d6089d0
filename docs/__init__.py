"""The documentation: Markdown pages, scripts that draw, and the package that builds the site."""
