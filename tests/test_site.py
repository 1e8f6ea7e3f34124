"""The site of the documentation, as it is built: names, navigation, and the way back."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALONE = ("index", "develop", "search", "genindex", "py-modindex")
"""The pages that are in no section."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The text of each page of the documents, by name."""
    pytest.importorskip("sphinx", reason="the site is built by Sphinx")
    pytest.importorskip("pydata_sphinx_theme")
    folder = tmp_path_factory.mktemp("site")
    build = sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"
    done = subprocess.run(
        [*build, "docs", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    pages = {str(p.relative_to(folder).with_suffix("")): p for p in folder.rglob("*.html")}
    return {
        name: path.read_text(encoding="utf-8")
        for name, path in pages.items()
        if not name.startswith("_")
    }


def plain(text):
    return " ".join(html.unescape(re.sub("<[^>]+>", "", text)).split())


@pytest.mark.long
def test_no_attribute_is_mangled(site):
    """Of "a, b : type", Sphinx would take "a," for the type of b."""
    fields = [
        plain(field)
        for name, text in site.items()
        if name.startswith("api/")
        for field in re.findall(r"<(?:li|dd[^>]*)><p>(<strong>.*?)(?: – |</p>)", text, re.S)
    ]
    assert len(fields) > 300
    assert not [field for field in fields if re.search(r"\((\w+, ?)+\)$", field)]
    assert "row_to_col, col_to_row (int32 arrays of length nrows, ncols)" in fields
    assert not [name for name, text in site.items() if "\ue000" in text]


@pytest.mark.long
def test_each_page_shows_its_section(site):
    """By pages to choose from at its side, and by the section's name above it."""
    for name, text in site.items():
        if name in ALONE:
            continue
        links = re.search(r'<nav class="bd-docs-nav[^>]*>(.*?)</nav>', text, re.S)
        assert links, name
        assert links[1].count("<a ") >= 4, f"{name}: an empty navigation"
        crumbs = re.search(r'<ul class="bd-breadcrumbs">(.*?)</ul>', text, re.S)
        is_first = name.endswith(("/README", "/index"))
        assert crumbs[1].count("breadcrumb-item") == (2 if is_first else 3), name


@pytest.mark.long
def test_the_first_page_shows_how_to_begin(site):
    text = plain(site["index"])
    assert "pip install" in text
    assert "import gpumatch as gm" in text
    assert site["index"].count('<a class="reference internal" href="recipes/') >= 12
    assert len(re.findall(r'<img src="_static/gallery/\w+\.svg"', site["index"])) == 8
