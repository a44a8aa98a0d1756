"""The model that a function is given, or that of the context it is called in."""

from __future__ import annotations

from pymc import Model, modelcontext

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError

LABELLED = "pytensor.xtensor."
"""Package of variables whose axes have names, which few models have; it is not imported to tell."""


def context_model(model: object) -> Model:
    """Return `model`, or the model of the context where it is None."""
    if model is None:
        try:
            return modelcontext(None)
        except TypeError:
            raise ArgumentError("There is no model: pass model=..., or call inside `with model:`.") from None
    if is_bambi(model):
        raise ArgumentError(
            "model must be a pymc.Model here, got a bambi.Model. Write it in PyMC first: "
            "model, domain = dp.models.from_bambi(model, domain)."
        )
    if not isinstance(model, Model):
        raise ArgumentError(
            f"model must be a pymc.Model, got {_validate.shown(model)}. Build it with `with pm.Model():`."
        )
    if named := [name for name, var in model.named_vars.items() if type(var).__module__.startswith(LABELLED)]:
        raise ArgumentError(
            f"model must not use pymc.dims, as {named[0]!r} does, which is not supported. Write it with pm.Data(..., "
            "dims=...), pm.Normal(..., dims=...) and the like."
        )
    return model


def is_bambi(model: object) -> bool:
    """Whether a model is bambi's; bambi is not imported to tell."""
    return type(model).__module__.partition(".")[0] == "bambi"


__all__ = ["context_model", "is_bambi"]
