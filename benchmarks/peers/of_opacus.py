"""Opacus: DP-SGD of a linear layer, as its documentation has it; steps, batches and averaging as by hand in JAX.

Where ε is for persons, one sample is a person: an array of rows, over which Opacus adds up gradients before it clips.
"""

from __future__ import annotations

import functools

import numpy as np
import torch
from _job import Job, Peer, rates, with_constant
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLIP = 1.0


@functools.cache
def noise(epsilon: float, delta: float, share: float, steps: int) -> float:
    """Noise over sensitivity by Opacus's PRV accountant, for one row more or less."""
    return get_noise_multiplier(
        target_epsilon=epsilon, target_delta=delta, sample_rate=share, steps=steps, accountant="prv"
    )


def _loss(kind: str, score: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Mean over samples, each of one row or of all rows of a person."""
    if kind == "linear":
        return ((score - y) ** 2).mean() / 2
    if kind == "logistic":
        return nn.functional.binary_cross_entropy_with_logits(score, y)
    each = nn.functional.binary_cross_entropy_with_logits(score, y.clamp(min=0), reduction="none")
    return (each * (y >= 0)).sum(dim=1).mean()


def fit(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    settings = rates(job)
    rows = torch.tensor(with_constant(job, x), dtype=torch.float32)
    answers = torch.tensor(y, dtype=torch.float32)
    layer = nn.Linear(rows.shape[-1], 1, bias=False)
    nn.init.zeros_(layer.weight)
    # One step of a batch of `share` n rows, by the mean of its gradients.
    loader = DataLoader(TensorDataset(rows, answers), batch_size=max(1, round(settings.share * len(rows))))
    # Opacus takes every row with probability 1 / len(loader).
    multiplier = noise(job.epsilon, job.delta, 1 / len(loader), settings.steps)
    layer, optimizer, loader = PrivacyEngine(accountant="prv").make_private(
        module=layer,
        optimizer=torch.optim.SGD(layer.parameters(), lr=settings.size),
        data_loader=loader,
        noise_multiplier=multiplier,
        max_grad_norm=CLIP,
    )
    total, step, kept = 0.0, 0, 0
    while step < settings.steps:
        for batch, target in loader:
            optimizer.zero_grad()
            _loss(job.kind, layer(batch)[..., 0], target).backward()
            optimizer.step()
            step += 1
            if step > settings.steps // 2:
                total, kept = total + next(layer.parameters()).detach().numpy().copy(), kept + 1
            if step == settings.steps:
                break
    return total / kept


PEERS = (
    Peer(
        name="DP-SGD, Opacus",
        neighbours="add or remove",
        fits={"logistic": fit, "linear": fit, "persons": fit},
        packages=("opacus", "torch"),
    ),
)
