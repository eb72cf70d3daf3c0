"""Asynchronous copies: the engine that completes them, and copies through tensor maps."""
