"""How sufficient statistics are released: what a user asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.families.histogram import Histogram
from pymc_dp.networks import Updates
from pymc_dp.release.noise import NOISES


@dataclass(frozen=True, init=False)
class Statistics:
    """How sufficient statistics are released.

    Parameters
    ----------
    noise : {"laplace", "gaussian"}
        Discrete Laplace noise: pure ε, no δ. Discrete Gaussian noise: needs δ > 0; less noise than Laplace's
        where one row moves many numbers, as in sums of several powers or products.
    noise_aware : bool
        True (default): the posterior accounts for the noise. False: the papers' form, which treats the projected
        release as the exact sums and is overconfident.
    share : mapping of str to float, optional
        Weight of each observed variable in the split of the budget: of ε under Laplace noise, of ρ (zCDP) under
        Gaussian noise, where four times the weight halves the noise. Default: equal.
    mechanism : Histogram, mapping of str to Histogram, LaplaceUpdates, FourierUpdates, or None
        Count values in public bins instead: of all observed variables (but those whose few levels are counted one by
        one anyway), or of those named. Or release a discrete Bayesian network as a whole, with one noise for all; there
        is no `share` then. None (default): bins only where a likelihood has no other statistics.

    Raises
    ------
    ArgumentError

    Examples
    --------
    >>> Statistics(share={"income": 1, "age": 2})
    Statistics(noise='laplace', noise_aware=True, share={'income': 1.0, 'age': 2.0})
    """

    noise: str
    noise_aware: bool
    share: Mapping[str, float] | None
    mechanism: Histogram | Mapping[str, Histogram] | Updates | None

    def __init__(
        self,
        noise: str = "laplace",
        noise_aware: bool = True,
        share: Mapping[str, float] | None = None,
        mechanism: Histogram | Mapping[str, Histogram] | Updates | None = None,
    ) -> None:
        joint = isinstance(mechanism, Updates)
        each = mechanism.values() if isinstance(mechanism, Mapping) else [mechanism] * (mechanism is not None)
        if not joint and not all(isinstance(item, Histogram) for item in each):
            raise ArgumentError(
                "mechanism must be dp.Histogram(edges), a mapping of names to these, dp.networks.LaplaceUpdates(), "
                f"dp.networks.FourierUpdates(), or None, "
                f"got {_validate.shown(mechanism)}. Leave it out to release counts or sums directly."
            )
        if joint and share is not None:
            raise ArgumentError(f"share= splits ε, but {mechanism!r} has one noise for all. Leave it out.")
        noise_aware = _validate.flag("noise_aware", noise_aware)
        if share is not None:
            _validate.mapping("share", share)
        object.__setattr__(self, "noise", _validate.choice("noise", noise, NOISES))
        object.__setattr__(self, "noise_aware", bool(noise_aware))
        object.__setattr__(self, "mechanism", dict(mechanism) if isinstance(mechanism, Mapping) else mechanism)
        object.__setattr__(
            self,
            "share",
            None
            if share is None
            else {name: _validate.epsilon(weight, f"share[{name!r}]") for name, weight in share.items()},
        )

    def __repr__(self) -> str:
        share = f", share={dict(self.share)!r}" if self.share else ""
        mechanism = f", mechanism={self.mechanism!r}" if self.mechanism else ""
        return f"Statistics(noise={self.noise!r}, noise_aware={self.noise_aware}{share}{mechanism})"

    def histogram(self, name: str) -> Histogram | None:
        """Bins asked for the variable of this name."""
        if isinstance(self.mechanism, Updates):
            return None
        return self.mechanism.get(name) if isinstance(self.mechanism, Mapping) else self.mechanism


__all__ = ["Statistics"]
