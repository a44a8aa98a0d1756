"""Compiled updates of hidden Markov models."""
