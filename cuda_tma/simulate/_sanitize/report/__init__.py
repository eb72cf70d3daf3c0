"""Findings of the sanitizer in words, one for each cause."""
