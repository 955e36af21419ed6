"""Ask the question under other compile settings, to name the compiler stage at fault."""
