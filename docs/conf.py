# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the documentation site; `make docs` builds it into build/docs."""

import os
import sys
from pathlib import Path

import adiabat

ROOT = Path(__file__).resolve().parents[1]
os.environ.setdefault("MPLBACKEND", "Agg")
sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "Adiabat"
author = "The Adiabat developers"
copyright = "The Adiabat developers"
version = release = adiabat.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
# gallery.md is the same gallery for readers of the sources.
exclude_patterns = ["gallery.md", "gallery", "_extensions"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples" / "gallery"),
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__main__\.py",
    "within_subsection_order": "ordering.ByList",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
    "plot_gallery": "True",
}


def skip_foreign(app, what, name, member, skip, options):
    """Leave out what a class inherits from other packages: their own pages have it."""
    home = getattr(member, "__module__", None) or getattr(
        getattr(member, "fget", None), "__module__", None
    )
    return skip or (home is not None and not home.startswith("adiabat")) or None


def setup(app):
    """Connect the rule above."""
    app.connect("autodoc-skip-member", skip_foreign)


html_theme = "pydata_sphinx_theme"
html_title = "Adiabat"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "install": [], "changelog": []}
