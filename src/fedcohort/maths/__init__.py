"""Array in, array out: the mathematics of the schemes, without any type of ours."""
