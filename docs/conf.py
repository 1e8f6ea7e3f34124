"""How Sphinx builds the documentation site: ``make docs``."""

from __future__ import annotations

import gpumatch

project = "gpumatch"
author = "the gpumatch developers"
copyright = f"2026, {author}"
version = release = gpumatch.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["examples"]

myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # the reports of bench begin with their own level
myst_enable_extensions = ["colon_fence"]

autodoc_member_order = "bysource"
autodoc_mock_imports = ["torch"]  # whoever builds the site may not have it
autodoc_typehints = "none"  # the docstrings say more than the annotations
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "pydata_sphinx_theme"
html_title = f"gpumatch {version}"
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": False, "show_toc_level": 2}
