"""The old way of what is private, until it stands on the kernel: secure randomness in the hands of others.

Samplers (`step_methods`) draw by themselves here, and charge by an event that they name. What they draw is theirs to
get right, and the statements of `docs/kernel.md` do not cover it. Each name goes with the last of them that uses it.
Nothing else may draw by these.
"""

from __future__ import annotations

from pymc_dp.kernel.randomness import derived_generator, secure_generator

__all__ = ["derived_generator", "secure_generator"]
