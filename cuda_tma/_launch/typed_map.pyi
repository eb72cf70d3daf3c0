from typing import final

from .._map_type import MapType
from ..enums import TensorMapDataType

@final
class TypedMap:
    @property
    def map_type(self) -> MapType: ...

def dtype_codes(data_type: TensorMapDataType) -> int: ...
def fixed_bits(map_type: MapType) -> tuple[int, int]: ...
