"""A real table: naive Bayes on UCI Adult predicts nearly as well from a private release as from the rows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import pymc_dp as dp

N_RELEASES = 2
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0])
def test_naive_bayes_predicts_from_a_private_release(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thresholds: what a plain plug-in prototype reached on the average of its releases."""
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    import _adult

    try:
        train, test = _adult.tables()
    except dp.datasets.DatasetError as error:
        pytest.skip(f"UCI Adult is not at hand: {error}")
    model, scores = _adult.naive_bayes(train), []
    with dp.testing.insecure_randomness(2024):
        for seed in range(N_RELEASES):
            private = dp.privatize(model, epsilon=epsilon, ledger=dp.Ledger(epsilon=epsilon))
            posterior = _adult.fit(private, seed).posterior.to_dataset()
            scores.append(_adult.score(_adult.predict(posterior, test), test["income"].to_numpy()))
    accuracy, log_p = (sum(column) / N_RELEASES for column in zip(*scores, strict=True))
    print(f"ε = {epsilon}: accuracy {accuracy:.4f}, mean log p(income | row) {log_p:.4f}; {scores}")
    least_accuracy, least_log_p = _adult.TARGETS[epsilon]
    assert accuracy >= least_accuracy
    assert log_p >= least_log_p
