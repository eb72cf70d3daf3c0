"""Tests of parsed PTX modules in JSON. The reader returns equal modules, and refuses any other JSON in bounded time."""

from __future__ import annotations

import json

import pytest

from cuda_tma.simulate._ptx import Function, Label, Reference, Register, Sink, Variable, Vector, parse, read
from cuda_tma.simulate._ptx.stored import _CLASSES, packed, unpacked

PTX = """
.version 8.0
.target sm_90a
.address_size 64
.file 1 "k.cu"
.visible .global .align 8 .u64 table[2] = {other, 5};
.const .align 4 .b8 bytes[4] = {1, 2, 3, 4};
.func (.reg .b32 r) other (.param .b64 given) { .reg .b32 %a<2>; mov.b32 r, %a1; ret; }
.visible .entry k (.param .u64 .ptr .global .align 4 out, .param .b32 n)
.maxntid 256, 1, 1
{
    .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<3>; .reg .f32 %f<2>;
    .shared .align 16 .b8 ring[64];
    .loc 1 7 3
    ld.param.u64 %d0, [out];
again:
    @!%p0 bra done;
    mov.f32 %f0, 0f3F800000;
    mov.u32 %r0, %tid.x;
    ld.shared.v2.u32 {%r1, _}, [ring+8];
    setp.lt.u32 %p0|%p1, %r0, 4294967295;
    @%p0 bra again;
    call (%r2), other, (%d0);
    st.global.u32 [%d0+4], %r1;
    ret;
done:
    ret;
}
.visible .entry unused () { ret; }
"""


def stored(bodies=("k", "other")):
    """Return the JSON of a module in the form that is stored on disk."""
    return json.loads(json.dumps(packed(read(PTX), "k", bodies)))


def never():
    raise AssertionError("the text is read again")


def test_values_return_equal():
    module, entry = unpacked(stored(), never)
    whole = parse(PTX)
    assert entry == "k" and [*module.functions] == [*whole.functions]
    assert {name: module.functions[name] for name in ("k", "other")} == {
        name: whole.functions[name] for name in ("k", "other")
    }
    assert (module.version, module.target, module.address_size) == ((8, 0), ("sm_90a",), 64)
    assert module.variables == whole.variables and [*module.variables] == [*whole.variables]


def test_equal_instructions_stay_different_objects():
    module, _ = unpacked(stored(), never)
    first, second = module.functions["k"].instructions[-2:]
    assert first.opcode == second.opcode and first is not second


def test_a_function_without_a_body_is_read_from_the_text():
    module, _ = unpacked(stored(), lambda: read(PTX))
    assert module.functions["unused"] == parse(PTX).functions["unused"]


def _rows_of(given, of):
    """Return the rows of a class in the stored JSON."""
    return [row for row in given["rows"] if row[0] == _CLASSES.index(of)]


def _register_beyond(given):
    _rows_of(given, Register)[0][1] = 10**6


def _negative_register(given):
    _rows_of(given, Register)[0][1] = -1


def _label_beyond(given):
    _rows_of(given, Label)[0][2] = 10**6


def _huge_variable(given):
    _rows_of(given, Variable)[0][5] = 1 << 60


def _reference_to_a_missing_name(given):
    _rows_of(given, Reference)[0][2] = "nothing"


def _reference_to_shared_memory(given):
    next(row for row in _rows_of(given, Variable) if row[1] == "table")[2] = "shared"
    _rows_of(given, Reference)[0][2] = "table"


def _reference_with_another_mask(given):
    _rows_of(given, Reference)[0][5] = 0


def _reference_beyond(given):
    _rows_of(given, Reference)[0][1] = 9


def _directive_of_zero(given):
    _rows_of(given, Function)[-1][5]["maxntid"] = [0]


def _another_type(given):
    _rows_of(given, Variable)[0][1] = 7


def _later_row(given):
    _rows_of(given, Vector)[0][1] = [len(given["rows"]) - 1]


def _doubled(given):
    """Add sixty vectors to the stored JSON, each of which contains the preceding vector twice."""
    vector = _CLASSES.index(Vector)
    given["rows"].append([vector, []])
    for _ in range(60):
        last = len(given["rows"]) - 1
        given["rows"].append([vector, [last, last]])


def _unknown_class(given):
    given["rows"][0][0] = 99


def _negative_class(given):
    given["rows"][0][0] = -1


def _no_entry(given):
    given["entry"] = "other"


def _no_rows(given):
    given["rows"] = {"0": 1}


def _short_row(given):
    given["rows"][0] = given["rows"][0][:1]


@pytest.mark.parametrize("change", [
    _register_beyond, _negative_register, _label_beyond, _huge_variable, _another_type, _later_row, _doubled,
    _unknown_class, _negative_class, _no_entry, _reference_to_a_missing_name, _reference_to_shared_memory,
    _reference_with_another_mask, _reference_beyond, _directive_of_zero, _no_rows, _short_row,
])  # fmt: skip
def test_other_json_is_refused(change):
    given = stored()
    change(given)
    with pytest.raises((ValueError, LookupError, TypeError)):
        unpacked(given, never)


@pytest.mark.parametrize("given", [None, [], {}, {"rows": []}, {"rows": [[]]}, "k", 5])
def test_other_values_are_refused(given):
    with pytest.raises((ValueError, LookupError, TypeError)):
        unpacked(given, never)


def test_the_clock_is_checked():
    given = stored()
    given["rows"] = [[_CLASSES.index(Sink)] for _ in range(5000)]
    calls = []
    with pytest.raises((ValueError, LookupError)):
        unpacked(given, never, lambda: calls.append(1))
    assert len(calls) == 5
