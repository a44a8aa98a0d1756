"""The generator behind samplers: secure by default, repeatable in tests, never silent."""

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.kernel.randomness import secure_generator


def test_secure_generators_are_aes_and_differ():
    first, second = secure_generator(), secure_generator()
    assert type(first.bit_generator).__name__ == "AESCounter"
    assert not np.array_equal(first.random(4), second.random(4))


def test_keys_come_from_the_operating_system(monkeypatch):
    monkeypatch.setattr("pymc_dp.kernel.randomness.secrets.randbits", lambda bits: 7)
    assert np.array_equal(secure_generator().random(4), secure_generator().random(4))


def test_without_noise_refuses():
    with dp.testing.without_noise(), pytest.raises(dp.errors.PrivacyError, match="insecure_randomness"):
        secure_generator()
