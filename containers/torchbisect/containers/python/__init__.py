"""Python interpreters, and the build variants that fit them."""
