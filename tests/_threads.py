"""Names that the tests of ``threads`` and related tests share."""

from __future__ import annotations

import sysconfig

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
