"""Public tables to try private models on. The rows are real people: treat them as you would your own."""

from pymc_dp.datasets._sources import DatasetError
from pymc_dp.datasets.adult import adult_categories, encode_adult, load_adult
from pymc_dp.datasets.collisions import load_collisions
from pymc_dp.datasets.events import read_events
from pymc_dp.datasets.fair import load_fair
from pymc_dp.datasets.randhie import load_randhie
from pymc_dp.datasets.syria import load_syria_events
from pymc_dp.datasets.tax_units import load_tax_units

__all__ = [
    "DatasetError",
    "adult_categories",
    "encode_adult",
    "load_adult",
    "load_collisions",
    "load_fair",
    "load_randhie",
    "load_syria_events",
    "load_tax_units",
    "read_events",
]
