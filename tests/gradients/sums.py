"""What leaves a release of noised gradients, just before its noise."""

from math import sqrt
from unittest.mock import patch

import numpy as np

import pymc_dp as dp
from pymc_dp.kernel import persons
from pymc_dp.kernel.noise import Noise


class Sums:
    """The integers of every sum of a release and the scale of its noise, along the path of the first release.

    Attributes
    ----------
    release : callable
        Releases a table; returns the private model and its ledger.
    """

    def __init__(self, release):
        self.release, self.path, self.scales = release, [], []

    def __call__(self, table):
        seen, first = [], not self.path
        rng = np.random.default_rng(1)
        keys = rng.permutation(10**4)

        def add(noise, sums, scale):
            seen.append(np.array(sums, dtype=object))
            if first:
                self.path.append(np.asarray(sums, dtype=float) + 0.01 * scale * rng.normal(size=np.shape(sums)))
                self.scales.append(scale)
            assert scale == self.scales[len(seen) - 1]
            return self.path[len(seen) - 1]

        with (
            patch.object(Noise, "add", add),
            patch.object(persons, "secure_keys", lambda count: keys[:count]),
            dp.testing.insecure_randomness(1),
        ):
            private, ledger = self.release(table)
        (self.entry,), self.events = ledger.history, dp.Release.of(private).record.event["events"]
        return seen

    def paid(self):
        """Yield for each event its kind and the sums it pays for: of a matrix first the diagonal, or its parts."""
        left, first = list(self.events), 0
        while first < len(self.path):
            for count in (1, 2, 3):
                part = range(first, min(first + count, len(self.path)))
                size, *diagonal = [sum(self.path[k].size for k in part), *(self.scales[k] / sqrt(2) for k in part[:-1])]
                found = [
                    event
                    for event in left
                    if event["coordinates"] == size
                    and np.allclose([*diagonal, self.scales[part[-1]]], event["scale"], rtol=1e-12)
                ]
                if found:
                    break
            assert found, "noise is drawn at a scale that is not charged"
            left.remove(found[0])
            yield (size, count > 1), part, found[0]["l2_squared"]
            first = part.stop
        assert not left, "nothing is charged that is not released"
