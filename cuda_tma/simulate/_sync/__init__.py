"""Barriers of each kind, the threads that wait at them, and the report of a deadlock."""
