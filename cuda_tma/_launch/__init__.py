"""Launches: a kernel's parameters, its configuration, arguments in their block, the driver call."""
