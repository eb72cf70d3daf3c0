"""Pages whose blocks run when the site is built. The build warns if the output differs from the page."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from pages import FOLDERS, compare, run
from sphinx.application import Sphinx
from sphinx.util import logging

_NAMED = re.compile(r"^```([\w+-]+) ([\w.-]+\.\w+)$", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    """Run the page, and write the name of each file above the file's block."""
    if page.split("/")[0] not in FOLDERS:
        return
    with tempfile.TemporaryDirectory() as folder:
        for ran in run(source[0], Path(folder), page):
            if wrong := compare(ran):
                logging.getLogger(__name__).warning(wrong, location=(page, ran.block.line))
    source[0] = _NAMED.sub(r"```{code-block} \1\n:caption: \2\n", source[0])
