"""How far a private step has come: a specification, bound to a model and a budget, priced, or at work on a chain."""

from __future__ import annotations

from typing import Any

import numpy as np

from pymc_dp.accounting import Budget, Event
from pymc_dp.before_kernel import secure_generator
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.samplers.chain_account import NOT_BEGUN
from pymc_dp.step_methods.binding import Binding
from pymc_dp.step_methods.funding import Funding, Priced


class Stages:
    """What a step has at each stage, as a whole; to ask for what is not there yet raises, and says what is missing."""

    _binding: Binding | None = None
    _priced: Priced | None = None
    _generator: np.random.Generator | None = None

    @property
    def binding(self) -> Binding:
        """Budget, chains and domain; raises for a specification, which has none."""
        if self._binding is None:
            raise ArgumentError(
                f"dp.{type(self).__name__}() has no budget: it is a specification for dp.sample(step=...). For "
                f"pm.sample, write dp.{type(self).__name__}(epsilon=..., chains=...) inside of the model."
            )
        return self._binding

    @property
    def priced(self) -> Priced:
        """What all steps cost; raises where their number is not known yet."""
        if self._priced is None:
            raise PrivacyError(f"{type(self).__name__} has no price yet: none of its chains has begun.")
        return self._priced

    @property
    def generator(self) -> np.random.Generator:
        """Privacy randomness of the chain; raises where none has begun."""
        if self._generator is None:
            raise PrivacyError(NOT_BEGUN)
        return self._generator

    @generator.setter
    def generator(self, generator: np.random.Generator) -> None:
        self._generator = generator

    @property
    def is_bound(self) -> bool:
        """Whether the step is more than a specification."""
        return self._binding is not None

    @property
    def is_priced(self) -> bool:
        """Whether the number of steps is known, and what they cost."""
        return self._priced is not None

    @property
    def in_chain(self) -> bool:
        """Whether a chain has begun here."""
        return self._generator is not None

    @property
    def budget(self) -> Budget:
        """What all chains may spend together."""
        return self.binding.budget

    @property
    def funding(self) -> Funding:
        """Budget, chains and steps that were priced."""
        return self.priced.funding

    @property
    def event(self) -> Event:
        """What all chains cost."""
        return self.priced.event

    @property
    def randomness(self) -> dict[str, Any] | None:
        """State of the chain's generator: whoever knows it can undo what is private."""
        return None if self._generator is None else dict(self._generator.bit_generator.state)

    @randomness.setter
    def randomness(self, state: dict[str, Any] | None) -> None:
        if state is None:
            self._generator = None
            return
        if self._generator is None or self._generator.bit_generator.state["bit_generator"] != state["bit_generator"]:
            self._generator = secure_generator()
        self._generator.bit_generator.state = state

    def __getstate__(self) -> dict[str, Any]:
        """Leave the chain's randomness behind: a copy that went on from another point would show rows without noise."""
        return {**vars(self), "_generator": None}


__all__ = ["Stages"]
