"""The pages for the driver's errors 700 to 720, which are made from the table of errors.

The titles of the pages contain the words for which users search.
"""

from __future__ import annotations

from write_errors import CASES, RECORDED, described, number_of, read

from cuda_tma._cuda_errors import CUDA_ERRORS, CudaError

FIRST, LAST = 700, 720


def error_pages() -> dict[str, str]:
    """Return every page by its name, and the index of the pages."""
    errors = [error for number, error in sorted(CUDA_ERRORS.items()) if FIRST <= number <= LAST]
    rows = "".join(f"| [{e.number}]({e.number}.md) | `{e.name}` | {e.text} |\n" for e in errors)
    names = "\n".join(str(error.number) for error in errors)
    pages = {f"{error.number}.md": _page(error) for error in errors}
    return pages | {"index.md": _INDEX.format(rows=rows, names=names)}


def _page(error: CudaError) -> str:
    return "\n".join([_head(error), _KERNEL.format(number=error.number) if error.is_sticky else "", _recorded(error)])


def _head(error: CudaError) -> str:
    meaning = error.meaning[:1].upper() + error.meaning[1:]
    return _HEAD.format(error=error, meaning=meaning)


def _recorded(error: CudaError) -> str:
    """Return a list of the recorded misuses that ended in this error."""
    if not RECORDED.exists():
        return ""
    device, *rows = read(RECORDED)
    cases = [row["case"] for row in rows if "blocking" not in row and number_of(row) == error.number]
    if not cases:
        return f"None of the {len(CASES)} recorded misuses (`record_faults.py`) ended in it.\n"
    listed = "".join(f"- {described(case)}\n" for case in cases)
    return _RECORDED.format(device=device["device"], driver=device["driver"], listed=listed, number=error.number)


_HEAD = """# CUDA error {error.number}: {error.text}

- driver API: `{error.name}`
- runtime API: `{error.runtime_name}`
- `cuGetErrorString`: {error.text}

{meaning}.

({error.source}.)
"""
_KERNEL = """## Find the kernel

1. Run again with `CUDA_LAUNCH_BLOCKING=1`: the first launch that fails runs it.
2. `cuda-tma explain {number}` lists the causes of this error in TMA. If you add a descriptor's 128 bytes, it reports
   whether the map is at fault.
3. Run the kernel on the simulator, which reports the line, the rule and the remedy:
   [test a kernel without a GPU](../how-to/test-without-gpu.md), [find a race](../how-to/find-a-race.md).
"""
_RECORDED = """## Causes of error {number}

Each of these misuses ran in a process of its own, on one {device}, driver {driver} (`record_faults.py`). The outcomes
of all of them: [the driver's errors](../errors.md).

{listed}"""
_INDEX = """# CUDA errors 700 to 720

The errors of a kernel that dies, and the misuses of TMA that cause them. [The driver's errors](../errors.md) lists the
recorded outcome of each misuse.

| number | name | text |
|---|---|---|
{rows}

```{{toctree}}
:hidden:

{names}
../errors
```
"""
