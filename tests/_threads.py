"""The functions and values that the tests with several threads share."""

from __future__ import annotations

import sysconfig

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
