"""How the guide is built: `make guide-test`, or sphinx-build -W docs/guide FOLDER."""

project = "Sapwood"
author = "the Sapwood developers"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "Sapwood: a user's guide"
html_show_sourcelink = False
html_show_copyright = False
exclude_patterns = []
