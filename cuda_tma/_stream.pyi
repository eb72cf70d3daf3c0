from typing import final

from ._weak_cache import Known

@final
class KnownStream(Known): ...
