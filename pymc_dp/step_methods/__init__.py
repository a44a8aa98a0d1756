"""Private samplers as PyMC step methods."""
