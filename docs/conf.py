"""How Sphinx builds the documentation site: ``make docs``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes

import gpumatch

sys.path.insert(0, str(Path(__file__).parent))
import pictures

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
html_static_path = ["static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
}

html_sidebars: dict[str, list[str]] = {
    page: [] for page in ("index", "develop", "search", "genindex", "py-modindex")
}

SECTIONS = ("guide/README", "recipes/README", "algorithms/README", "reproduction/README")
"""Pages whose links to pages beside them, in their order, are the contents of their section."""


def add_contents(app: Any, page: str, source: list[str]) -> None:
    """Append a hidden table of contents, which the navigation is made from."""
    if page == "reproduction/README":
        source[0] += f"\n{ALL_RESULTS}\n"
    if page in SECTIONS:
        beside = re.findall(r"\]\((\w+)\.md[#)]", source[0])
        source[0] += "\n:::{toctree}\n:hidden:\n\n" + "\n".join(dict.fromkeys(beside)) + "\n:::\n"


ALL_RESULTS = 'The site has <a href="../benchmarks.html">one page of all results</a>, too.'
"""The page is made after the site, so Sphinx does not know it."""

BLANK = "\ue000"
"""Stands for the blank in "a, b" where Sphinx takes what is before a blank for a type."""


def join_names(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Make napoleon's fields of "a, b : type" those of one name."""
    for k, line in enumerate(lines):
        field = re.match(r":(?:ivar|vartype) [^:]*, [^:]*:", line)
        if field:
            kind, names = field[0].split(" ", 1)
            lines[k] = f"{kind} {names.replace(' ', BLANK)}{line[field.end() :]}"


def part_names(app: Any, doctree: nodes.document) -> None:
    """Put the blanks back."""
    for text in list(doctree.findall(nodes.Text)):
        if BLANK in text:
            text.parent.replace(text, nodes.Text(text.replace(BLANK, " ")))


def draw_pictures(app: Any) -> None:
    """Draw those of the first page, which are files of the site only."""
    if app.builder.format == "html":
        pictures.draw(Path(app.outdir) / "_static" / "gallery")


def setup(app: Any) -> None:
    app.connect("builder-inited", draw_pictures)
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-docstring", join_names, priority=900)  # after napoleon's
    app.connect("doctree-read", part_names)
