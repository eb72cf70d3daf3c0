"""The kernels of a program, with their variables, and with PTX from the image or from a compiler."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from ...simulate._errors import ParseError, UnsupportedInstruction
from ...simulate._ptx import Module, read
from ..driver.images import NoPTX, ptx_of
from ..driver.kernel_names import kernel_name
from ..driver.machine_code import keep
from .messages import Counts

__all__ = ["GpuKernel", "Images"]

_ENTRY = r"\.entry\s+{}\s*[(\s]"


@dataclass(slots=True)
class GpuKernel:
    """A kernel of a program on a GPU.

    Attributes
    ----------
    entry : str
        The name of the kernel in the PTX.
    ptx : str
        The PTX text, or an empty string if the text is not known.
    reason : str
        The reason why the kernel's launches are not checked, or an empty string if they are checked.
    counts : Counts
    source : str
        The C++ text that NVRTC compiled, or an empty string if the text is not known.
    """

    entry: str
    ptx: str = field(default="", repr=False)
    reason: str = ""
    counts: Counts = field(default_factory=Counts)
    source: str = field(default="", repr=False)
    module: Module | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Return the name of the kernel in the source of the program."""
        return kernel_name(self.entry)

    @property
    def variables(self) -> list[str]:
        """Return the names of the module's variables that need memory."""
        found = self.module.variables.values() if self.module is not None else ()
        return [each.name for each in found if each.space in ("global", "const")]


class Images:
    """The images that a program has loaded, and the PTX that belongs to machine code.

    Parameters
    ----------
    compute_capability : tuple of int
    """

    def __init__(self, compute_capability: tuple[int, int]):
        self._compute_capability = compute_capability
        self._images: dict[int, bytes] = {}
        self._texts: dict[int, str | NoPTX] = {}
        self._modules: dict[str, Module] = {}
        self._sources: dict[str, str] = {}

    def add(self, number: int, image: bytes) -> None:
        """Add an image that the program has loaded."""
        self._images[number] = image

    def add_code(self, data: bytes) -> None:
        """Add machine code with its PTX and its C++. The data contains the size of the code, the code, the PTX, NUL,
        and the C++.
        """
        (size,) = struct.unpack_from("<Q", data)
        text, _, source = data[8 + size :].partition(b"\0")
        ptx = text.decode("utf-8", "replace")
        keep(data[8 : 8 + size], ptx)
        self._sources[ptx] = source.decode("utf-8", "replace")

    def kernel(self, number: int, entry: str) -> GpuKernel:
        """Return a kernel of an image, or the reason why its launches are not checked."""
        try:
            ptx = self._text(number)
            if not _has_entry(ptx, entry):
                return GpuKernel(entry, reason="the PTX of its image does not contain it")
            if ptx not in self._modules:
                self._modules[ptx] = read(ptx)
        except NoPTX as error:
            return GpuKernel(entry, reason=str(error))
        except (ParseError, UnsupportedInstruction, ValueError) as error:
            return GpuKernel(entry, reason=f"{type(error).__name__}: {error}")
        return GpuKernel(entry, ptx, source=self._sources.get(ptx, ""), module=self._modules[ptx])

    def _text(self, number: int) -> str:
        if number in self._images:
            try:
                self._texts[number] = ptx_of(self._images.pop(number), self._compute_capability)
            except NoPTX:  # The message of NoPTX lists the contents of an image, so the message differs for each image.
                self._texts[number] = NoPTX("its image has no PTX for the GPU, only machine code")
        text = self._texts.get(number, NoPTX("its image is not known"))
        if isinstance(text, NoPTX):
            raise text
        return text


def _has_entry(ptx: str, entry: str) -> bool:
    return re.search(_ENTRY.format(re.escape(entry)), ptx) is not None
