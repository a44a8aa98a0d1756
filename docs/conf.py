"""The site: ``make docs``. Nothing is downloaded and no notebook is run: they are shown as they were committed."""

from __future__ import annotations

import base64
import inspect
import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

from pymc_dp import __version__

ROOT = Path(__file__).resolve().parents[1]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "pymc_dp"
author = "The pymc-dp developers"
copyright = author
release = version = __version__

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
nb_merge_streams = True
# Notebooks say in their own outputs what they were run with; their headings are theirs.
suppress_warnings = ["mystnb.unknown_mime_type", "mystnb.mime_priority", "myst.header", "misc.highlighting_failure"]

html_theme = "pydata_sphinx_theme"
html_title = f"pymc_dp {version}"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": f"pymc_dp {version}"},
    "header_links_before_dropdown": 8,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "gallery": [], "compared": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    # Of [project.urls], once there is a public address.
    "icon_links": [
        {"name": name, "url": url, "icon": "fa-solid fa-code-branch"}
        for name, url in PROJECT.get("urls", {}).items()
        if name == "Source"
    ],
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
# Nothing is below them in the table of contents.
ALONE = ("start", "seven_names", "likelihoods", "samplers", "guarantees", "questions", "models", "compared", "glossary")
ALONE += ("gallery", "notebooks/**", "api/index")
html_sidebars: dict[str, list[str]] = {page: [] for page in ALONE}


def copy_notebooks() -> None:
    """Sphinx reads below this folder only."""
    target = ROOT / "docs" / "notebooks"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "notebooks", target, ignore=shutil.ignore_patterns("outputs", ".ipynb_checkpoints", "*.py"))
    for path in target.rglob("*.ipynb"):
        _save_thumbnail(path)
        _keep_errors_beside_numbers(path)


def _keep_errors_beside_numbers(path: Path) -> None:
    """Let no line of a table end between a number and its error."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                data["text/html"] = "".join(data["text/html"]).replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    path.write_text(json.dumps(notebook, ensure_ascii=False), encoding="utf-8")


def _save_thumbnail(path: Path) -> None:
    """Write the first picture in the outputs of a notebook beside it, for the gallery."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    pictures = [
        output["data"]["image/png"]
        for cell in cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    if pictures:
        path.with_suffix(".png").write_bytes(base64.b64decode("".join(pictures[0])))


class LinkNames(SphinxTransform):
    """``dp.name`` and ``dp.name(...)`` in the text of a page lead to the name's own page."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Put every such literal into a reference."""
        for literal in list(self.document.findall(nodes.literal)):
            found = re.match(r"dp\.([A-Za-z_][\w.]*\w)", literal.astext())
            if found and not isinstance(literal.parent, nodes.reference | pending_xref):
                target = {"refdomain": "py", "reftype": "obj", "reftarget": f"pymc_dp.{found[1]}", "refexplicit": True}
                reference = pending_xref("", refdoc=self.env.docname, **target)
                literal.replace_self(reference)
                reference += literal


def plain_code(app: Any, env: Any, node: Any, content: Any) -> Any:
    """What single backticks hold is most often a parameter, which has no page: leave it as code."""
    return content if node.get("reftype") == "obj" else None


def own_signature(app: Any, what: str, name: str, item: Any, options: Any, given: Any, returned: Any) -> Any:
    """PyMC's step methods are made by a `__new__` that takes anything: show what `__init__` takes."""
    if what != "class" or given is None or not given.startswith("(*args"):
        return None
    parameters = list(inspect.signature(item.__init__).parameters.values())[1:]
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    return str(inspect.Signature(plain)), returned


def setup(app: Any) -> None:
    """Called by Sphinx."""
    copy_notebooks()
    app.add_transform(LinkNames)
    app.connect("missing-reference", plain_code)
    app.connect("autodoc-process-signature", own_signature)
