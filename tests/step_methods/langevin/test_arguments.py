"""Every argument of every stochastic-gradient sampler shows, with what it means."""

import inspect
import re

import pytest

from pymc_dp.step_methods.base import PrivateStep
from pymc_dp.step_methods.langevin import SGFS, SGHMC, SGLD, SGNHT
from pymc_dp.step_methods.langevin.arguments import Shared
from pymc_dp.step_methods.langevin.base import StochasticGradient

OWN = {SGLD: ["precondition"], SGHMC: ["friction"], SGNHT: ["friction"], SGFS: ["fisher_share"]}


def parameters(function):
    return inspect.signature(function).parameters


@pytest.mark.parametrize(("sampler", "own"), OWN.items())
def test_signature_and_docstring_name_every_argument_once(sampler, own):
    shown = [*parameters(sampler)]
    assert shown == ["vars", *own, *Shared.__annotations__, "pymc_arguments"]
    assert [*parameters(sampler.__init__)] == ["self", *shown]
    section = re.search(r"Parameters\n-+\n(.*?)\n\n", inspect.getdoc(sampler), re.S)[1]
    entries = re.split(r"\n(?=\S)", section)
    heads = [name for entry in entries for name in entry.partition(" : ")[0].split(", ")]
    assert heads == shown[:-1]
    assert all("\n    " in entry for entry in entries)


@pytest.mark.parametrize("sampler", OWN)
def test_defaults_and_types_are_those_of_the_arguments_that_are_passed_on(sampler):
    taken = {**parameters(PrivateStep.__init__), **parameters(StochasticGradient.__init__)}
    for name, one in Shared.__annotations__.items():
        assert parameters(sampler)[name] == taken[name]
        assert taken[name].annotation == one.__forward_arg__


def test_what_no_sampler_takes_is_refused():
    with pytest.raises(TypeError, match="frictoin"):
        SGHMC(frictoin=0.1)
    assert repr(SGHMC(friction=0.2, dtype="float32")) == "SGHMC(dtype='float32', friction=0.2)"
