"""The execution of a launch: decoding, the state of all resident threads, and the loop that runs them."""
