"""The product of wgmma.mma_async as a function of arrays (PTX ISA, "wgmma.mma_async")."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from .._errors import UnsupportedInstruction
from .._ptx import Immediate, Instruction, Operand, Vector
from .adder import multiply_add, multiply_add_to
from .descriptor import piece_addresses
from .elements import Sums, decoded, element_bytes
from .fragments import rows_of_16, rows_to_sums, sums_to_rows

_SHAPE = re.compile(r"m64n(\d+)k(\d+)")
_NARROW = ("e4m3", "e5m2")
# The table maps the type of the accumulators to the types of the matrices A and B. The matrices A and B have the same
# type, or both types of a pair in the table.
_INPUTS = {"f32": (("f16",), ("bf16",), ("tf32",), _NARROW), "f16": (("f16",), _NARROW), "s32": (("s8", "u8"),)}


@dataclass(frozen=True)
class Wgmma:
    """One wgmma.mma_async, with its operands, the addresses of its matrices, and its product.

    Attributes
    ----------
    n, k : int
        The number of columns of B, and the number of elements along K, which have 32 bytes. The number of rows of A is
        64.
    a_type, b_type : str
        The types of A and B, such as ``"bf16"`` or ``"e4m3"``.
    sums : Sums
        The type of C and D, and the representation of both in registers.
    a, b, scale_d : Operand
        The operands. `a` is a descriptor or four registers (`a_in_registers`). If `scale_d` is false, D = A * B.
    d : tuple of Operand
        The registers of the sums.
    a_sign, b_sign : int
        The values of imm-scale-a and imm-scale-b: 1 or -1.
    a_mn_major, b_mn_major : bool
        Whether M or N is innermost in shared memory.
    """

    n: int
    k: int
    a_type: str
    b_type: str
    sums: Sums
    d: tuple[Operand, ...]
    a: Operand
    b: Operand
    scale_d: Operand
    a_sign: int = 1
    b_sign: int = 1
    a_mn_major: bool = False
    b_mn_major: bool = False

    @property
    def a_in_registers(self) -> bool:
        return isinstance(self.a, Vector)

    def a_addresses(self, descriptor: int) -> np.ndarray:
        """Return the shared addresses of the 16-byte pieces of A: [64, 2], or [16, 8] if A is MN-major."""
        return piece_addresses(descriptor, 64, self.a_mn_major)

    def b_addresses(self, descriptor: int) -> np.ndarray:
        """Return the shared addresses of the 16-byte pieces of B: [n, 2], or [16, n / 8] if B is MN-major."""
        return piece_addresses(descriptor, self.n, self.b_mn_major)

    def multiply(self, a: np.ndarray, b: np.ndarray, d: np.ndarray | None) -> np.ndarray:
        """Return the registers of D = A * B + D for several warpgroups.

        Parameters
        ----------
        a : numpy.ndarray
            The matrices A as bytes, uint8 [warpgroups, *a_addresses.shape, 16], or as registers, uint32 [4, warpgroups
            * 128].
        b : numpy.ndarray
            The matrices B as bytes, uint8 [warpgroups, *b_addresses.shape, 16].
        d : numpy.ndarray or None
            The registers of D, [len(d), warpgroups * 128] of `sums.register_dtype`; None if scale_d is false.

        Returns
        -------
        numpy.ndarray
            The new registers.
        """
        shape, dtype = (len(self.d), 128 * len(b)), self.sums.register_dtype
        found = np.zeros(shape, dtype) if d is None else np.array(d, dtype)
        groups = np.arange(len(b))
        self.multiply_in(found, np.arange(len(self.d)), 128 * groups, a, b, groups, d is not None)
        return found

    def multiply_in(
        self,
        registers: np.ndarray,
        rows: np.ndarray,
        lanes: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        b_of: np.ndarray,
        add: bool,
    ) -> None:
        """Compute D = A * B, or D = A * B + D if `add` is true, in place in the registers of warpgroups.

        Parameters
        ----------
        registers : numpy.ndarray
            All registers, [register, lane] of `sums.register_dtype`; `rows` are the registers of D.
        lanes : numpy.ndarray of intp, [warpgroups]
            The first lane of each warpgroup.
        a, b : numpy.ndarray
            As for `multiply`, but several warpgroups may have the same B.
        b_of : numpy.ndarray of intp, [warpgroups]
            The index in `b` of the matrix of each warpgroup.
        """
        left, right, types = self._left(a), _matrix(b, self.b_type, self.b_mn_major), (self.a_type, self.b_type)
        if self.sums.type == "f32":
            multiply_add_to(registers, rows, lanes, left, right, b_of, types, add)
            return
        fragments = registers.reshape(len(registers), -1, 128)
        at = np.ix_(rows, lanes // 128)
        with np.errstate(all="ignore"):
            c = self._sums(fragments[at].reshape(len(rows), -1)) if add else None
            if self.sums.type == "s32":
                found = left @ right[b_of].swapaxes(1, 2) + (0 if c is None else c)
            else:
                found = multiply_add(left, right[b_of], c, types, self.sums.type)
            packed = self.sums.pack(rows_to_sums(found.reshape(-1, self.n)))
        fragments[at] = packed.reshape(len(rows), -1, 128)

    def _left(self, a: np.ndarray) -> np.ndarray:
        if self.a_in_registers:
            left = decoded(rows_of_16(a), self.a_type).reshape(-1, 64, self.k)
        else:
            left = _matrix(a, self.a_type, self.a_mn_major)
        return -left if self.a_sign * self.b_sign < 0 else left

    def _sums(self, registers: np.ndarray) -> np.ndarray:
        return sums_to_rows(self.sums.unpack(registers)).reshape(-1, 64, self.n)


def _matrix(pieces: np.ndarray, type_: str, mn_major: bool) -> np.ndarray:
    """Return the matrix in pieces of 16 bytes as float64 [warpgroups, rows of A or columns of B, K]."""
    found = decoded(pieces.reshape(*pieces.shape[:2], -1), type_)
    return found.swapaxes(1, 2) if mn_major else found


def wgmma_of(instruction: Instruction) -> Wgmma:
    """Return the product of a wgmma.mma_async instruction.

    Sparse products and products of single bits are not supported.

    Raises
    ------
    UnsupportedInstruction
        If the form of the instruction is not supported.
    """
    words = list(instruction.opcode)
    saturate = "satfinite" in words
    shape = _SHAPE.fullmatch(words[4]) if len(words) > 4 else None
    types = tuple(word for word in words[5:] if word != "satfinite")
    if words[:4] != ["wgmma", "mma_async", "sync", "aligned"] or not shape or len(types) != 3:
        raise _unsupported(instruction)
    (d_type, a_type, b_type), n, k = types, int(shape[1]), int(shape[2])
    together = any({a_type, b_type} <= {*pair} for pair in _INPUTS.get(d_type, ()))
    if not together or k * element_bytes(a_type) != 32 or n % 8 or not 8 <= n <= 256 or (saturate and d_type != "s32"):
        raise _unsupported(instruction)
    d, a, b, scale_d, *rest = instruction.operands
    numbers = [each.value for each in rest if isinstance(each, Immediate)]
    signs = numbers[:2] if d_type != "s32" else [1, 1]
    majors = numbers[2:] if not isinstance(a, Vector) else [0, *numbers[2:]]
    expected = {"s32": 0}.get(d_type, 2) + (2 - isinstance(a, Vector) if element_bytes(a_type) == 2 else 0)
    count = n // 2 // (2 if d_type == "f16" else 1)
    if len(numbers) != expected or not isinstance(d, Vector) or len(d.elements) != count or not {*signs} <= {1, -1}:
        raise _unsupported(instruction, "its operands")
    (a_sign, b_sign), (a_mn_major, b_mn_major) = signs, map(bool, [*majors, 0, 0][:2])
    sums = Sums(d_type, saturate)
    return Wgmma(n, k, a_type, b_type, sums, d.elements, a, b, scale_d, a_sign, b_sign, a_mn_major, b_mn_major)


def _unsupported(instruction: Instruction, reason: str = "") -> UnsupportedInstruction:
    return UnsupportedInstruction(".".join(instruction.opcode), instruction.line, reason)
