"""The transformations a reduction is made of, one file each."""
