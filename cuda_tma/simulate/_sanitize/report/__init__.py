"""The reports of the sanitizer: the message of each kind of violation, and one finding for each cause."""
