"""Where builds of torch come from, one file a channel."""
