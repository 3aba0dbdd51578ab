"""The federation of the thesis on Flower: Fashion-MNIST, an MLP, Best-Loss."""
