"""The launches of a program on a GPU: a library in front of the driver captures them, and another process checks
them."""
