"""The functions and values that several tests of the device header's fences share."""

from __future__ import annotations

import cuda_tma

MAP = cuda_tma.params_of(cuda_tma.TensorSpec((64, 64), "uint8"), box_dim=(4, 64))
SLOT = "TensorMap& slot = *reinterpret_cast<TensorMap*>(memory + 65536);"
