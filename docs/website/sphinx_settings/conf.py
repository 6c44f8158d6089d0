"""Sphinx's settings: MyST's Markdown, and a theme that loads nothing from elsewhere."""

from fusion_bench import __version__

project = "fusion_bench"
author = "the fusion_bench authors"
version = release = __version__
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "fusion_bench"
html_static_path = ["static"]
html_css_files = ["site.css"]
# The pages link to what people read, not to their own Markdown.
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
# GitHub's anchors, which the pages use among themselves.
myst_heading_anchors = 4
# Blocks of several languages in one, such as a shell with its output, are text to Pygments.
suppress_warnings = ["misc.highlighting_failure"]
pygments_style = "default"
pygments_dark_style = "monokai"
nitpicky = True
