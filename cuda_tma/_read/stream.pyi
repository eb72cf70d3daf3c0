from typing import final

from .weak_cache import Known

@final
class KnownStream(Known): ...
