"""Posteriors of noised gradients from what was released, and those of the rows without privacy."""

import numpy as np
from scipy.optimize import minimize

import pymc_dp as dp


def posterior(private, deviations):
    """Mean and covariance from what was released, under normal priors with mean 0."""
    table = dp.Release.of(private).tables["gradients"]
    size = len(table)
    bent = table[:, 2 : size + 2] / table[:, 1]
    weight = np.linalg.solve(table[:, size + 2 :], bent)
    covariance = np.linalg.inv(np.diag(np.array(deviations, dtype=float) ** -2) + bent.T @ weight)
    return covariance @ (weight.T @ table[:, 0]), covariance


def without_privacy(model):
    """Mode of a model, and the inverse of the curvature there."""
    value, slope = model.compile_logp(), model.compile_dlogp()
    start = model.initial_point(0)
    ends = np.cumsum([np.size(one) for one in start.values()])[:-1]

    def point(at):
        return {name: part.reshape(np.shape(one)) for (name, one), part in
                zip(start.items(), np.split(at, ends), strict=True)}  # fmt: skip

    mode = minimize(
        lambda at: -float(value(point(at))),
        np.concatenate([np.ravel(one) for one in start.values()]),
        jac=lambda at: -slope(point(at)),
        method="BFGS",
    ).x
    steps = 1e-5 * np.eye(len(mode))
    curvature = np.array([slope(point(mode - one)) - slope(point(mode + one)) for one in steps]) / 2e-5
    return mode, np.linalg.inv((curvature + curvature.T) / 2)
