"""The checks of the sanitizer: one module for each kind of access or synchronization."""
