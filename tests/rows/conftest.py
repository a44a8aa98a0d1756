"""The model and the fixtures of the samplers that take stored rows."""

from tests.step_methods.langevin.conftest import _no_history, begin, compiled, model, shared

__all__ = ["_no_history", "begin", "compiled", "model", "shared"]
