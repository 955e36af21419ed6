"""Python interpreters, and the build variants that suit them."""
