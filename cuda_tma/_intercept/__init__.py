"""The interception of kernel launches by other runtimes, such as Triton or CuPy.

The simulator runs the intercepted launches. In a process of ``cuda-tma sanitize``, the import of a runtime also loads
the adapter of the runtime.
"""
