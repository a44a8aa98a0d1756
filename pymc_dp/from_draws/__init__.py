"""What released draws of one posterior sample say about the parameters of the table."""
