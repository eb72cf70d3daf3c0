"""The deadlines of a kernel's waits on a GPU, and the memory for reports of missed deadlines."""
