from typing_extensions import disjoint_base

from ._read.weak_cache import Known

@disjoint_base
class Signature(Known):
    @property
    def name(self) -> str: ...
