"""The site: ``make docs``. Nothing is downloaded and no notebook is run: they are shown as they were committed."""

from __future__ import annotations

import shutil
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

project = "pymc_dp"
author = "The pymc-dp developers"
copyright = author
release = version = version_of("pymc-dp")

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True
# A name in single backticks is one of the package's, where there is one of that name, and plain code otherwise.
default_role = "autolink"

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections say them in words
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "rv_type"}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"
# Notebooks say in their own outputs what they were run with; their headings are theirs.
suppress_warnings = ["mystnb.unknown_mime_type", "mystnb.mime_priority", "myst.header", "misc.highlighting_failure"]

html_theme = "pydata_sphinx_theme"
html_title = "pymc_dp"
html_show_sourcelink = False
html_theme_options = {
    "show_nav_level": 2,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_static_path: list[str] = []


def copy_notebooks() -> None:
    """Sphinx reads below this folder only."""
    target = ROOT / "docs" / "notebooks"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "notebooks", target, ignore=shutil.ignore_patterns("outputs", ".ipynb_checkpoints", "*.py"))


def plain_code(app: Any, env: Any, node: Any, content: Any) -> Any:
    """What single backticks hold is most often a parameter, which has no page: leave it as code."""
    return content if node.get("reftype") == "obj" else None


def setup(app: Any) -> None:
    copy_notebooks()
    app.connect("missing-reference", plain_code)
