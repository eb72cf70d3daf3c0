from typing import final

@final
class Property: ...
