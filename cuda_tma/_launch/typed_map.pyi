from typing import final

from ..enums import TensorMapDataType
from ..map_type import MapType

@final
class TypedMap:
    @property
    def map_type(self) -> MapType: ...

def dtype_codes(data_type: TensorMapDataType) -> int: ...
def fixed_bits(map_type: MapType) -> tuple[int, int]: ...
