"""The types and layouts of a product for the kernel of gemm_every_shape.py: the legal contracts, and their macros."""

from typing import NamedTuple

from _gemm_variants import STEP_BYTES

# The names of dtypes are those of torch. A float32 operand is rounded to tf32.
INPUTS = {
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "tf32",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "int8": "s8",
    "uint8": "u8",
}
ELEMENTS = {
    "bfloat16": "Bf16",
    "float16": "F16",
    "float32": "float",
    "float8_e4m3fn": "E4m3",
    "float8_e5m2": "E5m2",
    "int32": "int",
    "int8": "Int8",
    "uint8": "Uint8",
}
FP8, INTEGERS = {"float8_e4m3fn", "float8_e5m2"}, {"int8", "uint8"}
SUMS = {"float32": "float", "float16": "unsigned", "int32": "int"}  # An unsigned contains two sums in float16.
OUTPUTS = {
    "float32": {"float32", "float16", "bfloat16", *FP8},
    "float16": {"float32", "float16", "bfloat16", *FP8},
    "int32": {"float32", "float16", "bfloat16", "int32", *INTEGERS},
}
MAJORS = {True: "Major::k", False: "Major::mn"}


class Contract(NamedTuple):
    """The dtypes of A, B, the accumulators and C; whether K is contiguous in A and in B; and the epilogue."""

    a: str
    b: str
    sums: str
    c: str
    a_is_k_major: bool = True
    b_is_k_major: bool = True
    is_batched: bool = False
    is_scaled: bool = False
    bias: str | None = None
    activation: str | None = None
    is_bias_of_rows: bool = False

    @property
    def item_bytes(self):
        return bytes_of(self.a)

    def turned(self):
        """Return the contract of the transposed product."""
        swapped = self._replace(a=self.b, b=self.a, a_is_k_major=self.b_is_k_major, b_is_k_major=self.a_is_k_major)
        return swapped._replace(is_bias_of_rows=not self.is_bias_of_rows)

    def macros(self, is_turned):
        """Return the macros of the kernel. If `is_turned`, the right operand is A."""
        (left, left_major), (right, right_major) = self._operands(is_turned)
        macros = {
            "LEFT": INPUTS[left],
            "RIGHT": INPUTS[right],
            "LEFT_MAJOR": MAJORS[left_major],
            "RIGHT_MAJOR": MAJORS[right_major],
            "BATCHED": self.is_batched,
            "SUM": SUMS[self.sums],
            "OUTPUT": ELEMENTS[self.c],
            "SCALED": self.is_scaled,
            "BIAS_TYPE": ELEMENTS[self.bias] if self.bias else "void",
            "BIAS_OF_ROWS": self.is_bias_of_rows,
            "ACTIVATION": self.activation or "none",
        }
        header = self._header()
        return macros | ({"PRODUCTS": f"<cuda_tma/wgmma_{header}.cuh>"} if header else {})

    def _operands(self, is_turned):
        operands = (self.a, self.a_is_k_major), (self.b, self.b_is_k_major)
        return reversed(operands) if is_turned else operands

    def _header(self):
        of_sums = {"float16": "f16", "int32": "s8"}
        of_operands = {"float32": "tf32", **dict.fromkeys(FP8, "fp8")}
        return of_sums.get(self.sums) or of_operands.get(self.a)


def bytes_of(dtype):
    """Return the number of bytes of an element."""
    return 1 if dtype in FP8 | INTEGERS else 2 if dtype in ("float16", "bfloat16") else 4


def refusal(contract):
    """Return the sentence with which a contract is refused, or None if the kernel accepts the contract."""
    a, b, sums, c = contract[:4]
    for dtype, known in ((a, INPUTS), (b, INPUTS), (sums, SUMS), (c, ELEMENTS)):
        if dtype not in known:
            return f"{dtype} is not one of {', '.join(known)}"
    if a != b and not any({a, b} <= kind for kind in (FP8, INTEGERS)):
        return f"A is {a} and B is {b}: pass operands of one dtype, or two of fp8, or int8 and uint8"
    allowed = {"float32": set(INPUTS) - INTEGERS, "float16": {"float16"} | FP8, "int32": INTEGERS}[sums]
    if a not in allowed:
        return f"the tensor cores do not add products of {a} in {sums}: choose accumulators of another dtype"
    if c not in OUTPUTS[sums]:
        return f"C is {c}, which does not follow from {sums}: choose {', '.join(sorted(OUTPUTS[sums]))}"
    if contract.item_bytes != 2 and not (contract.a_is_k_major and contract.b_is_k_major):
        return f"an operand of {a} has contiguous M or N: wgmma reads only 16-bit operands so; make K contiguous"
    return None


def unaligned(names_and_tensors):
    """Return the sentence with which a tensor is refused whose contiguous extent is not a multiple of 16 bytes."""
    for name, tensor in names_and_tensors:
        bytes_of_row = tensor.shape[-1] * tensor.element_size()
        if bytes_of_row % 16:
            return f"{name} has {bytes_of_row} contiguous bytes: TMA requires a multiple of 16; pad the dimension"
    return None


assert STEP_BYTES == 128  # The swizzle of the operands' tiles has 128 bytes.
