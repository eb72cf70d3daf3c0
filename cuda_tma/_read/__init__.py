"""Functions that read a user's objects: a tensor, its memory and context, a stream, or an index."""
