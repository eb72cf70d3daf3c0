"""What the tests of launching share: handles of kernels, a configuration, and another library's stream."""

from cuda import core

HANDLES = iter(range(0x1000, 1 << 30, 16))


class ForeignStream:
    def __init__(self, handle=0x77):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


CONFIG = core.LaunchConfig(grid=(2, 3, 4), block=(5, 6, 7), shmem_size=99)
