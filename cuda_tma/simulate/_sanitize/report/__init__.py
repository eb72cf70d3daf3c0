"""The reports of the sanitizer, with a message for each kind of violation, and one finding for each cause."""
