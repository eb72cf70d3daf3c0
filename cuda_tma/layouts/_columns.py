"""Sentences about two layouts in tensor memory: their columns, the registers of each thread, and the correction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ._element_layout import ElementLayout
from ._tensor_memory import A_RULE, COLUMNS, Fragment, fragment

__all__ = ["lines"]

# The sentences about two layouts use the elements in _ELEMENTS as examples.
_ELEMENTS = ((0, 0), (0, 1), (1, 0), (-1, -1))


def lines(written: ElementLayout, read: ElementLayout, loaded: ElementLayout | None) -> Iterator[str]:
    """Yield the sentences about the two layouts."""
    if loaded is not None:
        yield _said("loaded", loaded)
    yield _said("written", written)
    yield _said("read", read)
    yield from _columns(written, read)
    if loaded is not None:
        yield from _shared_columns(written, loaded)
    yield from _registers(written, loaded)
    yield from _rule(read)
    yield from _corrections(written, read, loaded)


def _said(role: str, layout: ElementLayout) -> str:
    rows, columns = layout.shape
    elements = dict.fromkeys((row % rows, column % columns) for row, column in _ELEMENTS)
    places = [f"({row}, {column}) in {layout.said(row, column)}" for row, column in elements]
    return (
        f"{role}: {layout.name}, {rows} x {columns} elements of {layout.bits} bits in {_named_columns(_used(layout))}: "
        f"element {'; '.join(places)}"
    )


def _used(layout: ElementLayout) -> np.ndarray:
    return np.unique(layout.places[..., 1])


def _listed(columns: np.ndarray) -> str:
    """Return the text of ranges, such as ``0 to 31, 64 to 95``."""
    ends = np.flatnonzero(np.diff(columns) != 1)
    pairs = zip(columns[[0, *(ends + 1)]].tolist(), columns[[*ends, -1]].tolist(), strict=True)
    return ", ".join(f"{first} to {last}" if first != last else str(first) for first, last in pairs)


def _named_columns(columns: np.ndarray) -> str:
    return f"column{'s' * (len(columns) > 1)} {_listed(columns)}"


def _verb(columns: np.ndarray) -> str:
    return "is" if len(columns) == 1 else "are"


def _columns(written: ElementLayout, read: ElementLayout) -> Iterator[str]:
    if shared := written.places[..., 0].size - len(
        np.unique(written.places.reshape(-1, written.places.shape[-1]), axis=0)
    ):
        yield f"{shared:,} elements are written to the place of another element, so only the last one remains"
    missing = np.setdiff1d(_used(read), _used(written))
    if len(missing):
        yield (
            f"{_named_columns(missing)} {_verb(missing)} read and not written: the instruction multiplies what was "
            "there before, perhaps NaN"
        )
    unread = np.setdiff1d(_used(written), _used(read))
    if len(unread):
        yield f"{_named_columns(unread)} {_verb(unread)} written and not read"


def _shared_columns(written: ElementLayout, loaded: ElementLayout) -> Iterator[str]:
    both = np.intersect1d(_used(written), _used(loaded))
    if len(both):
        what = f"{_named_columns(both)} {_verb(both)} loaded, too"
        yield f"{what}: each warp must complete its loads before it writes there"


def _registers(written: ElementLayout, loaded: ElementLayout | None) -> Iterator[str]:
    """Yield a sentence about the registers.

    Each thread of ``32x32b`` has a lane, and a register for each column.
    """
    stored, each = len(_used(written)), 32 // written.bits
    store = f"stores {_counted_registers(stored, 'st')}"
    packed = f", with {each} elements in each" if each > 1 else ""
    if loaded is None:
        yield f"each thread has a lane, and {store}{packed}"
        return
    count = len(_used(loaded))
    yield f"each thread has a lane: it loads {_counted_registers(count, 'ld')}, and {store}{packed}"


def _counted_registers(count: int, verb: str) -> str:
    """Return a number of registers as text, with the instruction that moves all of these registers, if it exists."""
    registers = f"{count} register{'s' * (count > 1)}"
    return f"{registers} (tcgen05.{verb}.32x32b.x{count})" if count & count - 1 == 0 and count <= 128 else registers


def _rule(read: ElementLayout) -> Iterator[str]:
    found = fragment(read.name)
    if found is not None and found.role == "tmem.a":
        yield f"{A_RULE}; here {found.printed_row_stride} is printed"


def _corrections(written: ElementLayout, read: ElementLayout, loaded: ElementLayout | None) -> Iterator[str]:
    """Yield another base if all elements differ by the same number of columns, or another shape if rows differ."""
    common = tuple(slice(min(ends)) for ends in zip(written.shape, read.shape, strict=True))
    difference = written.places[common] - read.places[common]
    shift = int(difference[0, 0, 1])
    others = np.delete(difference, 1, axis=-1)
    if others.any() or (difference[..., 1] != shift).any():
        yield "no base makes the layouts equal: their elements are in different orders"
        return
    if shift:
        yield from _bases(written, read, shift)
    yield from _lengths(written, read, loaded, shift)


def _bases(written: ElementLayout, read: ElementLayout, shift: int) -> Iterator[str]:
    at_read, at_written = (int(each.places[..., 1].min()) for each in (read, written))
    elements = f", {abs(shift) * 32 // read.bits} elements of its pointer" if read.bits < 32 else ""
    further = f"{abs(shift)} columns {'further' if shift > 0 else 'before'}{elements}"
    yield (
        f"correction: let the read begin at column {at_read + shift} ({further}){_named(read, shift)}; or let the "
        f"write begin at column {at_written - shift}{_named(written, -shift)}. Then each element that is read has the "
        "lane, the column and the part in which it is written"
    )


def _named(layout: ElementLayout, shift: int) -> str:
    found = _moved(layout.name, shift)
    return f": {found.name}" if found is not None else ""


def _moved(name: str, shift: int) -> Fragment | None:
    found = fragment(name)
    return found.at_base(found.layout.base + shift) if found and found.layout.base + shift >= 0 else None


def _lengths(written: ElementLayout, read: ElementLayout, loaded: ElementLayout | None, shift: int) -> Iterator[str]:
    """Compare the lengths of the rows, and yield the changes that make all of them equal.

    The shift is the number of columns by which the read begins too early.
    """
    stored, taken = written.shape[1], read.shape[1]
    held = stored if loaded is None else loaded.shape[1]
    if held == stored == taken:
        return
    counts = (
        [(stored, "written"), (taken, "read")]
        if loaded is None
        else [(held, "loaded"), (stored, "written"), (taken, "read")]
    )
    all_of_it = _changes(written, read, shift, held if loaded is not None else max(stored, taken))
    part = _changes(written, read, shift, min(stored, taken))
    if loaded is not None and min(stored, taken) < held:
        part = [f"load {min(stored, taken)} elements of each row", *part]
    remedies = [" and ".join(each) for each in (all_of_it, part) if each]
    remedy = f": {'; or '.join(dict.fromkeys(remedies))}" if remedies else ""
    moved = f", for a read that begins at column {_used(read)[0] + shift}" if shift and remedies else ""
    yield f"the rows have {_counted(counts)} elements; one length is right{moved}{remedy}"


def _counted(counts: list[tuple[int, str]]) -> str:
    words = [f"{number} {verb}" for number, verb in counts]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _changes(written: ElementLayout, read: ElementLayout, shift: int, columns: int) -> list[str]:
    """Return the layouts whose rows must change to have `columns` elements.

    The result is empty if a layout cannot have rows of this length.
    """
    found = []
    for verb, layout, moved in (("write", written, 0), ("read", read, shift)):
        if layout.shape[1] != columns:
            changed = _changed(_moved(layout.name, moved), columns)
            if changed is None:
                return []
            found.append(f"{verb} {changed.name}")
    return found


def _changed(found: Fragment | None, columns: int) -> Fragment | None:
    changed = found.with_blocks(columns) if found is not None else None
    if changed is None:
        return None
    last = int(changed.elements().places[..., 1].max())
    return changed if last < COLUMNS else None
