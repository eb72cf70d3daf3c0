"""Barriers of each kind, the threads that wait at the barriers, and the report of a deadlock."""
