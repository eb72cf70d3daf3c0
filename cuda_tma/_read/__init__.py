"""The conversion of a user's objects: a tensor, its memory and context, a stream, or an index."""
