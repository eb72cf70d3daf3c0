"""Tests of the last accepted and the first refused value of each field of a stored module."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from cuda_tma.simulate._ptx import Reference, RegisterName, Sink, Variable, Vector, read, stored
from cuda_tma.simulate._ptx.module import MASKS
from cuda_tma.simulate._ptx.stored import _CLASSES, packed, unpacked

SINK, VECTOR = _CLASSES.index(Sink), _CLASSES.index(Vector)
MODULE, REGISTERS, PARAMETERS = stored.MODULE_BYTES, stored.REGISTERS, stored.PARAMETER_BYTES


def refused(function, *arguments):
    """Return whether a function raises ValueError."""
    try:
        function(*arguments)
    except ValueError:
        return True
    return False


def test_the_parts_of_a_value():
    values = stored._Values()
    values.add([SINK])
    values.add([VECTOR, [0] * 1023])
    assert values.found[1].elements == (Sink(),) * 1023
    assert refused(values.add, [VECTOR, [0] * 1024]) and refused(values.add, [VECTOR, [1, 0]])


def test_types_of_plain_fields():
    values = stored._Values()
    assert [refused(stored._count, given) for given in (0, 7, -1, True, "1", 1.0, None)] == [False] * 2 + [True] * 5
    for field, right, wrong in (
        (stored._INT, (0, -5, 1 << 70), (True, "1", 1.0, None)),
        (stored._STR, ("", "a"), (1, None, ["a"])),
        (stored._BOOL, (True, False), (0, 1, "")),
        (stored._BYTES, (None, "", "00ff"), (7, [1], "0g")),
        (stored._OPCODE, ("", "ld.global"), (7, None, ["ld"])),
    ):
        assert not any(refused(field.unpack, values, each) for each in right)
        assert all(refused(field.unpack, values, each) for each in wrong)
    assert stored._BYTES.unpack(values, "00ff") == b"\0\xff" and stored._BYTES.unpack(values, None) is None
    assert stored._OPCODE.unpack(values, "ld.global") == ("ld", "global")


def test_a_row_of_a_class_that_a_field_does_not_allow():
    values = stored._Values()
    values.add([SINK])
    assert values.get(0, (Sink,)) == Sink() and refused(values.get, 0, (Vector,)) and refused(values.get, -1, (Sink,))
    with pytest.raises(IndexError):
        values.get(1, (Sink,))
    optional = stored._one(Sink, optional=True), stored._several(stored._one(Sink), optional=True)
    assert [field.unpack(values, None) for field in optional] == [None, None]
    required = stored._one(Sink), stored._several(stored._one(Sink))
    assert all(refused(field.unpack, values, None) for field in required)


@pytest.mark.parametrize(
    ("changes", "is_refused"),
    [
        ({}, False),
        ({"size_bytes": MODULE}, False),
        ({"size_bytes": MODULE + 1}, True),
        ({"size_bytes": 0, "initial": None}, False),
        ({"size_bytes": -1, "initial": None}, True),
        ({"initial": b"1" * 16}, False),
        ({"initial": b"1" * 17}, True),
        ({"align": 1}, False),
        ({"align": 0}, True),
        ({"offset": 0}, False),
        ({"offset": -1}, True),
        ({"references": (Reference(8, "a", 0, False),)}, False),
        ({"references": (Reference(9, "a", 0, False),)}, True),
        ({"references": (Reference(0, "a", 0, False), Reference(-1, "a", 0, False))}, True),
        ({"references": (Reference(15, "a", 0, False, MASKS[0]),)}, False),
        ({"references": (Reference(16, "a", 0, False, MASKS[0]),)}, True),
        ({"references": (Reference(0, "a", 0, False, 3),)}, True),
    ],
)
def test_a_variable(changes, is_refused):
    variable = Variable(**{"name": "v", "space": "global", "type": "b8", "align": 4, "size_bytes": 16} | changes)
    assert refused(stored._check_variable, variable) is is_refused


NAMES = (RegisterName("a", "b32"), RegisterName("b", "b64"))


@pytest.mark.parametrize(
    ("changes", "register", "label", "is_refused"),
    [
        ({}, 1, 3, False),
        ({}, 2, -1, True),
        ({}, -1, 4, True),
        ({"labels": {"L": 3}}, -1, -1, False),
        ({"labels": {"L": 4}}, -1, -1, True),
        ({"labels": {"L": -1}}, -1, -1, True),
        ({"branch_targets": {"T": (0, 3)}}, -1, -1, False),
        ({"branch_targets": {"T": (0, 4)}}, -1, -1, True),
        ({"registers": NAMES[:1] * REGISTERS}, -1, -1, False),
        ({"registers": NAMES[:1] * (REGISTERS + 1)}, -1, -1, True),
        ({"registers": (*NAMES, RegisterName("c", "b7"))}, -1, -1, True),
        ({"attributes": {"maxntid": (1, 2, 3), "pragma": ("x",)}}, -1, -1, False),
        ({"attributes": {"maxntid": (0,)}}, -1, -1, True),
        ({"params": (SimpleNamespace(offset=PARAMETERS - 4, size_bytes=4),)}, -1, -1, False),
        ({"params": (SimpleNamespace(offset=PARAMETERS - 4, size_bytes=5),)}, -1, -1, True),
    ],
)
def test_a_function(changes, register, label, is_refused):
    given = {"instructions": (None,) * 3, "labels": {}, "branch_targets": {}, "registers": NAMES, "attributes": {},
             "params": ()}  # fmt: skip
    assert refused(stored._check_function, SimpleNamespace(**given | changes), register, label) is is_refused


PTX = """.version 9.0
.target sm_90a
.address_size 64
.global .b8 a[4]; .global .b8 b[6]; .shared .b8 c[2];
.visible .entry k() { ret; }
"""


def test_the_variables_of_a_module(monkeypatch):
    given = json.loads(json.dumps(packed(read(PTX), "k", ["k"])))

    def unpack():
        return unpacked(given, lambda: read(PTX))

    for name, most in (("VARIABLES", 3), ("MODULE_BYTES", 12)):
        with monkeypatch.context() as changed:
            changed.setattr(stored, name, most)
            assert len(unpack()[0].variables) == 3
            changed.setattr(stored, name, most - 1)
            assert refused(unpack)


@pytest.mark.parametrize(
    ("key", "value"),
    [("version", [9]), ("version", [9, -1]), ("version", [9, 0, 0]), ("address_size", -1), ("target", [90]),
     ("target", "sm_90a"), ("entry", 7), ("bodies", "k"), ("bodies", []), ("functions", {}), ("variables", [99])],
)  # fmt: skip
def test_other_values_of_a_module(key, value):
    given = json.loads(json.dumps(packed(read(PTX), "k", ["k"])))
    with pytest.raises((ValueError, LookupError, TypeError)):
        unpacked(given | {key: value}, lambda: read(PTX))
