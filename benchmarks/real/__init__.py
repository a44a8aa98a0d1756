"""Private posteriors of real tables beside those of the same rows without privacy: ``python -m benchmarks.real``."""
