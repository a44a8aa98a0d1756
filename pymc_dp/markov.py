"""Markov chains of hidden states, and the states summed out of a model or drawn again."""

from pymc_dp.transforms.marginal_states import draw_states, marginalize_states
from pymc_dp.transforms.markov_states import MarkovStates

__all__ = ["MarkovStates", "draw_states", "marginalize_states"]
