"""What samplers have in common: rows of a model as the kernel takes them, and ranges that are found on public rows."""
