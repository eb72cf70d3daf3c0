"""A simulated GPU: arguments, settings and modules, and one launch under several schedules."""
