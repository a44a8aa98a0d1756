"""Objective perturbation, Kifer, Smith, Thakurta (2012), with ridges chosen by `bench_logistic.py`."""

from __future__ import annotations

import numpy as np
from _job import Job, Peer
from _logistic import Table, kifer
from _ridges import CHOSEN, EPSILONS, GAUSSIAN


def logistic(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    shape = "Adult" if x.shape[1] > 20 else "Abalone"
    place = int(np.argmin(np.abs(np.log(np.array(EPSILONS) / job.epsilon))))
    ridge = CHOSEN[shape][GAUSSIAN][place]
    return kifer(np.random.default_rng(), Table(x, y), job.epsilon, job.delta, ridge)[None]


PEERS = (Peer(name="objective perturbation, Kifer et al.", neighbours="replace", fits={"logistic": logistic}),)
