"""Links from a page to a file of the repository that is not a page. The site contains each such file with highlighted
code.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from docutils import nodes
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.addnodes import download_reference, pending_xref
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent.parent
_LEXERS = {".cuh": "cuda", ".cu": "cuda", ".pyx": "cython"}


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    # The function runs before Sphinx copies the file as a download.
    app.connect("doctree-read", _to_sources, priority=100)
    app.connect("html-collect-pages", _source_pages)
    app.connect("env-merge-info", lambda app, env, pages, other: _linked(env).update(_linked(other)))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _linked(env: object) -> set[str]:
    """Return the files to which pages link, by their paths in the repository."""
    if not hasattr(env, "linked_sources"):
        env.linked_sources = set()  # type: ignore[attr-defined]
    return env.linked_sources  # type: ignore[attr-defined]


def _to_sources(app: Sphinx, tree: nodes.document) -> None:
    folder = (Path(app.srcdir) / app.env.docname).parent
    for found in [*tree.findall(download_reference), *tree.findall(pending_xref)]:
        path = folder.joinpath(found["reftarget"]).resolve()
        if isinstance(found, pending_xref):  # MyST treats Markdown files as pages.
            path = path.with_suffix(".md")
        if path.is_file() and path.is_relative_to(ROOT) and path.suffix not in (".svg", ".png", ".html"):
            if isinstance(found, pending_xref) and path.is_relative_to(app.srcdir):
                continue
            name = path.relative_to(ROOT).as_posix()
            _linked(app.env).add(name)
            target = app.builder.get_relative_uri(app.env.docname, f"source/{name}")
            found.replace_self(nodes.reference("", "", *found.children, refuri=target, internal=True))


def _source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, str], str]]:
    for name in sorted(_linked(app.env)):
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        code = app.builder.highlighter.highlight_block(text, _lexer(path), linenos=False)
        yield f"source/{name}", {"title": name, "body": f"<h1>{escape(name)}</h1>\n{code}"}, "page.html"


def _lexer(path: Path) -> str:
    try:
        return _LEXERS.get(path.suffix) or get_lexer_for_filename(path.name).aliases[0]
    except ClassNotFound:
        return "text"
