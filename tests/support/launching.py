"""The kernel handles, the configuration and the foreign stream that several tests of launches share."""

from cuda import core

HANDLES = iter(range(0x1000, 1 << 30, 16))


class ForeignStream:
    def __init__(self, handle=0x77):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


CONFIG = core.LaunchConfig(grid=(2, 3, 4), block=(5, 6, 7), shmem_size=99)


def kernel_name(*parameters):
    """Return the mangled name of a kernel. A MapType is the type of a parameter, and any other parameter is a letter of
    the ABI."""
    return "_Z1k" + "".join(each if isinstance(each, str) else _mangled_map(each) for each in parameters)


def _mangled_map(map_type):
    """Return a mangled name of a typed map without the abbreviations (substitutions) of a compiler."""

    def mangled(name, *arguments):
        return f"N8cuda_tma{len(name)}{name}I{''.join(arguments)}EE"

    def constant(name, value):
        return f"LN8cuda_tma{len(name)}{name}E{int(value)}E"

    extents = "".join(f"Li{extent}E" for extent in map_type.tile_dim)
    tile = mangled(
        "Tile",
        constant("DataType", map_type.data_type),
        mangled("Box", f"J{extents}E"),
        constant("Swizzle", map_type.swizzle),
    )
    fill, promotion = constant("OobFill", map_type.oob_fill), constant("L2Promotion", map_type.l2_promotion)
    if map_type.mode == "im2col":
        return mangled("Im2colMap", tile, f"Li{map_type.rank}E", fill, promotion)
    return mangled("TiledMap", tile, fill, promotion)
