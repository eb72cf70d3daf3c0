"""The configuration of the documentation site, which `make docs-site` builds. The site needs the extra `docs`, and
neither a GPU nor the network.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tools"), str(HERE / "extensions")]

from cuda_tma import __version__  # noqa: E402

project = "cuda_tma"
author = "The cuda_tma maintainers"
copyright = "the cuda_tma maintainers, Apache License 2.0"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "benchmark_figures",
    "executed_pages",
    "generated_pages",
    "numbers_in_search",
    "repository_links",
    "short_names",
    "standing_pages",
]
# Sphinx cannot link these names, which are private types, or types of other packages without the package name.
nitpick_ignore_regex = [
    (
        "py:.*",
        r"(_pytest|collections|cuda|enum|matplotlib|np|numpy|os|pathlib|types|torch|typing|typing_extensions)\..*",
    ),
    ("py:.*", r"cuda_tma\.(.*\.)?_.*|cuda_tma\.simulate\.ptx\..*"),
    ("py:.*", "Figure|GraphDefinition|GraphNode|KernelNode|SearchStrategy|T|TiledKeywords"),
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["extensions", "static"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = [
    "myst.header",  # Pages in docs/benchmarks begin with a heading of the second level.
    "ref.python",  # Both cuda.core and the simulator define a class Kernel.
]
myst_links_external_new_tab = False

autodoc_mock_imports = [] if find_spec("torch") else ["torch"]
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
autosummary_generate = False  # The extension numpydoc enables autosummary, which would generate pages.
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "pydata_sphinx_theme"
html_title = "cuda_tma"
html_static_path = ["static"]
html_favicon = "static/favicon.svg"
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "github-light",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": []}
