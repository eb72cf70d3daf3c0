"""A launch while it runs: decoding, the state of all resident threads, and the loop that drives them."""
