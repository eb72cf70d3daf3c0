from typing import final

@final
class Configuration: ...
