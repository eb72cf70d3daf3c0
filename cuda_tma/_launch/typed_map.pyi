from typing import final

from ..map_type import MapType

@final
class TypedMap:
    @property
    def map_type(self) -> MapType: ...

def fixed_bits(map_type: MapType) -> tuple[int, int]: ...
