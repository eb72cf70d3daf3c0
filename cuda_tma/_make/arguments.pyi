from collections.abc import Iterable, Mapping

from ..enums import TensorMapDataType

def fill_tables(data_types: Iterable[TensorMapDataType], dtypes: Mapping[tuple[int, int, int], str]) -> None: ...
