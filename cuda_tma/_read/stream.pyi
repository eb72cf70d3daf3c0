from typing import final

from cuda.core import GraphBuilder, Stream

from .weak_cache import Known

@final
class KnownStream(Known): ...

def is_capturing(stream: Stream | GraphBuilder | object) -> bool: ...
