"""Launches that cuda_tma and the simulator must both refuse, or must both accept."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from cuda import core

CONFIG = {"grid": 1, "block": 32}
MAP = "const __grid_constant__ TiledMap<Tile<FLOAT32, Box<8, 16>>> map"
IM2COL = "const __grid_constant__ Im2colMap<Tile<FLOAT32, Box<8, 16>>, 4> map"
PLAIN_MAP = "const __grid_constant__ TensorMap map"
PAIR = "Pair pair"


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_double))


class Foreign:
    """An object of another library, which is not an array."""


class Wrong(NamedTuple):
    """A launch that both launch functions refuse with an error that contains `words`."""

    name: str
    parameters: str
    arguments: tuple[Any, ...]
    words: str
    config: Any = CONFIG
    attribute: str = ""


class Right(NamedTuple):
    """A launch that both launch functions accept."""

    name: str
    parameters: str
    arguments: tuple[Any, ...]
    config: Any = CONFIG
    attribute: str = ""


def array(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.zeros(shape, dtype)


def mapped(**keywords: Any) -> Callable[..., Any]:
    """Return a tensor map from the package of the tested launch function."""
    return lambda make: make(array(64, 64), **keywords)


def configured(**fields: Any) -> core.LaunchConfig:
    """Return a LaunchConfig whose fields are assigned, because its constructor would query the driver."""
    config = core.LaunchConfig(grid=1, block=32)
    for name, value in fields.items():
        setattr(config, name, value)
    return config


ARGUMENTS = [
    Wrong("none", "int n", (), "kernel k takes 1 argument, and 0 were given"),
    Wrong("too many", "int n", (1, 2), "kernel k takes 1 argument, and 2 were given"),
    Wrong("int for float", "float x", (1,), "takes a float of 4 bytes, and the int 1 was passed; pass 1.0"),
    Wrong("huge int for float", "float x", (10**400,), "the int <1329 bits> was passed; pass a float"),
    Wrong("int for double", "double x", (7,), "takes a float of 8 bytes, and the int 7 was passed; pass 7.0"),
    Wrong("True for float", "float x", (True,), "the bool True (1 byte) was passed; pass int(True)"),
    Wrong("float for int", "int n", (1.0,), "takes an integer of 4 bytes, and the float 1.0 was passed"),
    Wrong("True for int", "int n", (True,), "the bool True (1 byte) was passed; pass int(True)"),
    Wrong("int for bool", "bool b", (2,), "takes a bool of 1 byte, and the int 2 was passed; pass bool(2)"),
    Wrong("float for bool", "bool b", (1.0,), "takes a bool of 1 byte"),
    Wrong("float beyond", "float x", (1e300,), "1e+300 does not fit a float"),
    Wrong("int beyond", "int n", (1 << 32,), "4294967296 does not fit the parameter's 4 bytes"),
    Wrong("int below", "int n", (-(1 << 31) - 1,), "-2147483649 does not fit"),
    Wrong("char beyond", "char c", (256,), "256 does not fit the parameter's 1 bytes"),
    Wrong("short below", "short s", (-32769,), "-32769 does not fit the parameter's 2 bytes"),
    Wrong("long beyond", "long long n", (1 << 64,), "does not fit the parameter's 8 bytes"),
    Wrong("float64 for float", "float x", (np.float64(1),), "(float64, 8 bytes) was passed; pass float(value)"),
    Wrong("float16 for float", "float x", (np.float16(1),), "(float16, 2 bytes) was passed; pass float(value)"),
    Wrong("float32 for int", "int n", (np.float32(1),), "(float32, 4 bytes) was passed"),
    Wrong("int64 for int", "int n", (np.int64(1),), "(int64, 8 bytes) was passed; pass int(value)"),
    Wrong("int32 for float", "float x", (np.int32(1),), "(int32, 4 bytes) was passed"),
    Wrong("c_double for float", "float x", (ctypes.c_double(1),), "(c_double, 8 bytes) was passed"),
    Wrong("c_int for float", "float x", (ctypes.c_int(1),), "(c_int, 4 bytes) was passed"),
    Wrong("bool_ for int8", "signed char c", (np.bool_(True),), "1 bytes) was passed"),
    Wrong("fraction for float", "float x", (Fraction(1, 2),), "a Fraction was passed"),
    Wrong("complex for double", "double x", (1 + 0j,), "the complex (1+0j) was passed"),
    Wrong("float for half", "__half x", (1.0,), "the float 1.0 was passed; pass numpy.float16(value)"),
    Wrong("text for int", "int n", ("1",), "a str was passed"),
    Wrong("None for int", "int n", (None,), "a NoneType was passed"),
    Wrong("array for int", "int n", (array(1, dtype="int32"),), "was passed"),
    Wrong("array of no dimension for int", "int n", (np.array(2),), "was passed; pass value.item()"),
    Wrong("array of no dimension for float", "float x", (np.array(2.0),), "was passed; pass value.item()"),
    Wrong("None for pointer", "float* p", (None,), "takes a pointer of 8 bytes, and a NoneType was passed"),
    Wrong("text for pointer", "float* p", ("x",), "a str was passed"),
    Wrong("list for pointer", "float* p", ([1.0, 2.0],), "a list was passed"),
    Wrong("float for pointer", "float* p", (1.5,), "the float 1.5 was passed"),
    Wrong("bytes for pointer", "float* p", (bytes(8),), "a bytes was passed; bytes are for a struct"),
    Wrong("object for pointer", "float* p", (Foreign(),), "a Foreign was passed"),
    Wrong("array of objects", "float* p", (np.array([object()]),), "a ndarray was passed"),
    Wrong("map for pointer", "float* p", (mapped(box_dim=(8, 16)),), "a tensor map (128 bytes) was passed; declare"),
    Wrong(
        "second of two", "float* p, float x", (array(4), 1), "argument 1 (x) of kernel k: the parameter takes a float"
    ),
    Wrong("short bytes for struct", PAIR, (bytes(8),), "takes 16 bytes, and b"),
    Wrong("int for struct", PAIR, (1,), "takes 16 bytes, and the int 1 was passed"),
    Wrong("c_int for struct", PAIR, (ctypes.c_int(1),), "(c_int, 4 bytes) was passed"),
]

MAPS = [
    Wrong("integers for floats", MAP, (array(16, 16, dtype="int32"),), "the tensor's elements are int32"),
    Wrong("other size of elements", MAP, (array(16, 16, dtype="float64"),), "(box_dim, data_type and swizzle are"),
    Wrong("other rank", MAP, (array(2, 16, 16),), "box_dim"),
    Wrong("text for a map", MAP, ("x",), "argument 0 (map) of kernel k, TiledMap<"),
    Wrong("list for a map", MAP, ([[1.0]],), "argument 0 (map) of kernel k, TiledMap<"),
    Wrong("None for a map", MAP, (None,), "argument 0 (map) of kernel k, TiledMap<"),
    Wrong("int for a map", MAP, (0,), "and the int 0 was passed; pass a tensor or a TensorMapDescriptor"),
    Wrong("null for a map", MAP, (ctypes.c_void_p(0),), "(c_void_p, 8 bytes) was passed; pass a tensor"),
    Wrong("other box", MAP, (mapped(box_dim=(4, 16)),), "its box_dim is (4, 16), the kernel's (8, 16)"),
    Wrong("other swizzle", MAP, (mapped(box_dim=(8, 16), swizzle="64B"),), "its swizzle is 64B, the kernel's NONE"),
    Wrong("other strides", MAP, (mapped(box_dim=(8, 16), element_strides=(2, 1)),), "its element_strides is (2, 1)"),
    Wrong("row of an odd stride", MAP, (array(16, 15),), "1 rule is broken"),
    Wrong("short bytes for a map", MAP, (bytes(64),), "(bytes, 64 bytes) was passed"),
    Wrong("bytes that are no map", MAP, (bytes(range(128)),), "the map that was passed is of another"),
    Wrong("array for an im2col map", IM2COL, (array(1, 8, 8, 16),), "an im2col map needs corners"),
    Wrong("tiled for im2col", IM2COL, (mapped(box_dim=(8, 16)),), "its mode is tiled, the kernel's im2col"),
    Wrong("array for a plain map", PLAIN_MAP, (array(64, 64),), "a parameter of 128 bytes takes a TensorMapDescriptor"),
    Wrong("int for a plain map", PLAIN_MAP, (5,), "takes 128 bytes, and the int 5 was passed"),
]

BLOCK_SIZE, CLUSTERS = "__block_size__((64, 1, 1))", "__cluster_dims__(2, 1, 1)"
COUNTED = "__block_size__((64, 1, 1), (2, 1, 1))"
CONFIGURATIONS = [
    Wrong("a tuple", "", (), "config is a tuple; launch takes a cuda.core.LaunchConfig or", (1, 32)),
    Wrong("None", "", (), "config is a NoneType; launch takes", None),
    Wrong("another field", "", (), "the configuration has no field 'blocks'", {"grid": 1, "blocks": 32}),
    Wrong("no block", "", (), "the configuration has no block", {"grid": 1}),
    Wrong("an empty grid", "", (), "grid=0; pass one to three integers", {"grid": 0, "block": 32}),
    Wrong("four extents", "", (), "grid=(1, 1, 1, 1); pass one to three", {"grid": (1, 1, 1, 1), "block": 32}),
    Wrong("a fraction", "", (), "block=1.5; pass one to three integers", {"grid": 1, "block": 1.5}),
    Wrong("text", "", (), "block='32'; pass one to three integers", {"grid": 1, "block": "32"}),
    Wrong("too many threads", "", (), "has 2048 threads; pass a block of at most 1024", {"grid": 1, "block": 2048}),
    Wrong("too many layers", "", (), "block=(1, 1, 65) is too large", {"grid": 1, "block": (1, 1, 65)}),
    Wrong("too high a grid", "", (), "grid=(1, 65536, 1) is too large", {"grid": (1, 65536), "block": 32}),
    Wrong("assigned threads", "", (), "has 2048 threads", configured(block=(2048, 1, 1))),
    Wrong("two assigned extents", "", (), "the configuration's grid is (2, 1)", configured(grid=(2, 1))),
    Wrong("too large a cluster", "", (), "has 17 CTAs; pass a cluster of at most 16", configured(cluster=(17, 1, 1))),
    Wrong(
        "too wide a grid of clusters", "", (), "grid times cluster", configured(grid=(1, 40000, 1), cluster=(1, 2, 1))
    ),
    Wrong("negative memory", "", (), "shmem_size=-1; pass bytes", {**CONFIG, "shmem_size": -1}),
    Wrong("memory in text", "", (), "shmem_size is '1'; pass an integer", {**CONFIG, "shmem_size": "1"}),
    Wrong("too much memory", "", (), "with 300000 bytes of dynamic shared memory", {**CONFIG, "shmem_size": 300_000}),
    Wrong("flag in text", "", (), "is_cooperative is 'no'; pass True", {**CONFIG, "is_cooperative": "no"}),
    Wrong("other block", "", (), "(__block_size__, .reqntid): launch it with block=(64, 1, 1)", CONFIG, BLOCK_SIZE),
    Wrong("block of as many threads", "", (), ".reqntid", {"grid": 1, "block": (32, 2)}, BLOCK_SIZE),
    Wrong(
        "beyond the bounds", "", (), "at most 64 (__launch_bounds__", {"grid": 1, "block": 65}, "__launch_bounds__(64)"
    ),
    Wrong("other cluster", "", (), "was compiled for clusters of (2, 1, 1)", configured(cluster=(4, 1, 1)), CLUSTERS),
    Wrong("half a cluster", "", (), "grid=(3, 1, 1) is not a multiple of", {"grid": 3, "block": 32}, CLUSTERS),
    Wrong("no cluster", "", (), ".explicitcluster): pass cluster", CONFIG, "__cluster_dims__()"),
    Wrong("rank", "", (), ".maxclusterrank", configured(cluster=(4, 1, 1)), "__launch_bounds__(64, 1, 2)"),
    Wrong("counted twice", "", (), ".blocksareclusters", configured(block=(64, 1, 1), cluster=(2, 1, 1)), COUNTED),
]

WRONG = [*ARGUMENTS, *MAPS, *CONFIGURATIONS]

RIGHT = [
    Right("numbers", "int n, float x, bool b, double y", (1, 1.0, True, 2.0)),
    Right("unsigned as int", "int n", ((1 << 32) - 1,)),
    Right("infinite", "float x", (float("inf"),)),
    Right("numbers of NumPy", "int n, float x, bool b", (np.int32(1), np.float32(1), np.bool_(True))),
    Right("uint32 for int", "int n", (np.uint32(1),)),
    Right("float16", "__half x", (np.float16(1),)),
    Right("numbers of ctypes", "int n, float x", (ctypes.c_int(1), ctypes.c_float(1))),
    Right("array", "float* p", (array(4),)),
    Right("array of other elements", "float* p", (array(4, dtype="int8"),)),
    Right("address", "float* p", (0x1000,)),
    Right("null", "float* p", (ctypes.c_void_p(None),)),
    Right("complex", "Complex c", (1 + 2j,)),
    Right("struct", PAIR, (Pair(1, 2.0),)),
    Right("bytes for struct", PAIR, (bytes(16),)),
    Right("bytearray for struct", PAIR, (bytearray(16),)),
    Right("every second byte for struct", PAIR, (memoryview(bytes(32))[::2],)),
    Right("void for struct", PAIR, (np.void(bytes(16)),)),
    Right("tensor for a map", MAP, (array(64, 64),)),
    Right("map", MAP, (mapped(box_dim=(8, 16)),)),
    Right("bytes of a map", MAP, (lambda make: bytes(make(array(64, 64), box_dim=(8, 16))),)),
    Right("map for a plain map", PLAIN_MAP, (mapped(box_dim=(4, 4)),)),
    Right("three extents", "", (), {"grid": (2, 2, 2), "block": [4, 4, 4]}),
    Right("LaunchConfig", "", (), core.LaunchConfig(grid=2, block=64)),
    Right("memory", "", (), {**CONFIG, "shmem_size": 200_000}),
    Right("clusters", "", (), configured(grid=(2, 1, 1), cluster=(2, 1, 1))),
    Right("required block", "", (), {"grid": 3, "block": 64}, BLOCK_SIZE),
    Right("bounded block", "", (), {"grid": 1, "block": (8, 8)}, "__launch_bounds__(64)"),
    Right("compiled clusters", "", (), {"grid": 4, "block": 32}, CLUSTERS),
    Right("compiled clusters that are given", "", (), configured(cluster=(2, 1, 1)), CLUSTERS),
    Right("explicit cluster", "", (), configured(cluster=(2, 1, 1)), "__cluster_dims__()"),
    Right("a grid that counts clusters", "", (), {"grid": 3, "block": 64}, COUNTED),
]  # fmt: skip
