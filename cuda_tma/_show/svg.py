"""SVG as text: its elements, the light and dark colors of pictures, and a page with one picture.

A picture contains its text as characters, not as outlines. A picture has its own background, so that it is readable on
any page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

__all__ = ["MONO", "SANS", "document", "element", "style", "text", "width_of"]

SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_LETTER = 0.6  # In a monospaced font, the width of a letter is 0.6 times its height.


def element(tag: str, *inside: str, **attributes: object) -> str:
    """Return one element of SVG.

    Underscores in the names of attributes become hyphens, ``class_`` becomes ``class``, and an attribute None is
    omitted.

    Examples
    --------
    >>> element("rect", x=1.50, width=3, class_="wait")
    '<rect x="1.5" width="3" class="wait"/>'
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_written(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{given}>{''.join(inside)}</{tag}>" if inside else f"<{tag}{given}/>"


def _written(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return escape(str(value))


def text(words: str, x: float, y: float, **attributes: object) -> str:
    """Return the element of a text at a position."""
    return element("text", escape(words), x=x, y=y, **attributes)


def width_of(words: str, size: float) -> float:
    """Return the approximate width in pixels of a text in a monospaced font of `size` pixels."""
    return len(words) * size * _LETTER


def style(light: Mapping[str, str], dark: Mapping[str, str], common: str = "") -> str:
    """Return a style sheet from rules by selector. The rules of `dark` apply if the reader prefers dark colors."""
    return f"<style>{common}{_rules(light)}@media (prefers-color-scheme:dark){{{_rules(dark)}}}</style>"


def _rules(rules: Mapping[str, str]) -> str:
    return "".join(f"{selector}{{{rule}}}" for selector, rule in rules.items())


def document(parts: Iterable[str], width: float, height: float, title: str, class_: str | None = None) -> str:
    """Return a whole picture, whose title a screen reader can read."""
    return element(
        "svg",
        element("title", escape(title)),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=title,
        class_=class_,
    )
