"""stockexample: a Flower / NumPy app."""
