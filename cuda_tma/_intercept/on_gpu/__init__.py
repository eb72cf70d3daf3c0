"""The launches of a program on a GPU. A library in front of the driver captures them, and another process
checks them."""
