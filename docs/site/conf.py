"""Settings of Sphinx; docs/site/build.py runs it."""

from __future__ import annotations

from typing import Any

import latex2mathml.converter
from docutils import nodes
from sphinx.application import Sphinx

import aclnn_torch

project = "aclnn_torch"
author = "the aclnn_torch authors"
release = version = aclnn_torch.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4  # as on GitHub, for links into a page
myst_fence_as_directive = ["math"]  # as GitHub writes formulas
suppress_warnings = ["myst.header"]  # pages may begin with any heading level
autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"aclnn_torch {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"


def formula(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """Renders a formula as MathML, which browsers support: the site loads no scripts from elsewhere."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    translator.body.append(latex2mathml.converter.convert(node.astext(), display=display))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Registers the rendering of formulas with Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(formula, None), block_renderers=(formula, None))
