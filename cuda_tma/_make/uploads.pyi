from typing_extensions import disjoint_base

from .._read.weak_cache import Known

@disjoint_base
class UploadedMaps(Known): ...
