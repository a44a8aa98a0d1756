"""What is made up: parameters from the prior, rows of a table given them, columns between their public bounds."""
