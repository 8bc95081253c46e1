"""Settings of Sphinx; docs/site/build.py runs it."""

import aclnn_torch

project = "aclnn_torch"
author = "the aclnn_torch authors"
release = version = aclnn_torch.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4  # as on GitHub, for links into a page
suppress_warnings = ["myst.header"]  # pages may begin a section at any level
autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"aclnn_torch {release}"
