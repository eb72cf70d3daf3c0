"""The checks of the sanitizer, with one module for each kind of access or synchronization."""
