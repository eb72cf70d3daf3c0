"""The checks of the sanitizer, each for one kind of access or synchronization."""
