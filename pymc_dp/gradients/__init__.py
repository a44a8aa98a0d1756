"""Noised gradients: one release of sums of gradients and curvatures, from which any prior's posterior follows."""
