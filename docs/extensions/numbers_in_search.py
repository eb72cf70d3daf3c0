"""An index and a search that include numbers such as "715". Sphinx itself omits words of digits from the index and from
queries.
"""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

_DROPS = r" || queryTerm.match(/^\d+$/)"  # A function in searchtools.js drops words of digits from a query.


class _SearchNumbers(SearchEnglish):
    def word_filter(self, word: str) -> bool:
        return word not in self.stopwords


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.add_search_language(_SearchNumbers)
    app.connect("build-finished", _keep_numbers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _keep_numbers(app: Sphinx, failed: Exception | None) -> None:
    script = Path(app.outdir) / "_static" / "searchtools.js"
    if failed or not script.exists():
        return
    text = script.read_text(encoding="utf-8")
    if _DROPS not in text:
        raise ValueError(f"{script} no longer drops numbers by {_DROPS!r}: see whether a search for 715 finds its page")
    script.write_text(text.replace(_DROPS, ""), encoding="utf-8")
