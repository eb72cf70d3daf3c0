"""A simulated GPU: its arguments, settings and modules, and the launch of a kernel under several schedules."""
