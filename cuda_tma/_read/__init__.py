"""Reading what a user hands over: a tensor, its memory and context, a stream, an index."""
