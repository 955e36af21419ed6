"""Make a shrunk script fail by itself under plain ``python``, with an assertion of what differs."""
