"""The functions and values that several tests of the device header's instructions share."""

from __future__ import annotations

import re
from itertools import product

PARAMETERS = {
    "tile": "void*",
    "memory": "void*",
    "full": "Barrier*",
    "map": "const TensorMap*",
    "policy": "CachePolicy",
    **dict.fromkeys(("arrivals", "bytes", "parity", "nanoseconds", "rank"), "unsigned"),
    **dict.fromkeys("abcde", "int"),
    **dict.fromkeys(("r", "s", "t", "mask"), "unsigned short"),
    "fraction": "float",
    "word": "unsigned*",
    "out": "unsigned long long*",
}
MULTICAST = ".multicast::cluster"
REMOTE = "mapa.shared::cluster.u32(shared({}), rank)"


def fill(text: str, fields: dict[str, str]) -> str:
    """Replace the fields of a template as str.format() does, but keep the braces of C++ and PTX."""
    return re.sub(r"\{(\w+)\}", lambda field: fields[field[1]], text)


def copies(forms: dict[str, str], ranks: range) -> dict[str, str]:
    """Return the statements that copy a tile, for each rank, with and without a cache policy."""
    fields = [
        {
            "rank": str(rank),
            "at": f"{{{', '.join('abcde'[:rank])}}}",
            "offsets": f"{{{', '.join('rst'[: rank - 2])}}}",
            "policy": policy and f", {policy}",
            "hint": policy and ".L2::cache_hint",
        }
        for rank, policy in product(ranks, ("", "policy"))
    ]
    return {fill(statement, own): fill(form, own) for (statement, form), own in product(forms.items(), fields)}
