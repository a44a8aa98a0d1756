"""Publish how often wives of Fair's survey had an affair, by how they rate their marriage, at ε = 1.

Run it with `make demo`. The survey (6366 women) comes with the package; nothing is downloaded.
"""

from pathlib import Path
from time import perf_counter

import arviz_plots as azp
import matplotlib
import pymc as pm

import pymc_dp as dp

matplotlib.use("Agg")

RATINGS = ["very poor", "poor", "fair", "good", "very good"]
OUTPUTS = Path(__file__).resolve().parents[1] / "outputs"


def build_model(survey) -> pm.Model:
    """An ordinary PyMC model: each rating has its own share, and the shares have a common distribution."""
    with pm.Model(coords={"rating": RATINGS}) as model:
        rating = pm.Data("rating_index", survey["rate_marriage"].to_numpy() - 1)
        mean = pm.Beta("mean", 1, 1)
        concentration = pm.Gamma("concentration", 2, 0.1)
        share = pm.Beta("share", mean * concentration, (1 - mean) * concentration, dims="rating")
        pm.Bernoulli("affair", share[rating], observed=survey["affair"].to_numpy())
    return model


def draw_forest(private, not_private, path: Path) -> None:
    figure = azp.plot_forest(
        {"private, ε = 1": private, "not private": not_private},
        var_names=["share"],
        labels=["rating"],
        combined=True,
        ci_probs=(0.5, 0.9),
        figure_kwargs={"figsize": (9, 5), "figsize_units": "inches", "layout": "constrained"},
    )
    figure.add_legend("model", title="", loc="outside upper center", ncols=2)
    plot = figure.viz["plot"].sel(column="forest").item()
    plot.set_xlabel("share who had an affair, with 50% and 90% intervals")
    figure.savefig(path, dpi=100)


def main() -> None:
    azp.style.use("arviz-variat")
    OUTPUTS.mkdir(exist_ok=True)
    survey = dp.datasets.load_fair()
    model = build_model(survey)

    print("1. Before anything is spent: what is private, what it would cost, what is assumed public.\n")
    print(dp.explain(model).full())

    print("\n2. Spend ε = 1 of a budget of 2, once, and sample as long as you like.\n")
    ledger = dp.Ledger(epsilon=2.0)
    start = perf_counter()
    with model:
        idata = dp.sample(epsilon=1.0, ledger=ledger, label="affairs by rating", chains=4, random_seed=1)
    print(f"\nThis took {perf_counter() - start:.1f} s, compilation included.\n")
    print(idata.dp.report())
    print(f"\n{ledger}")

    print("\n3. For comparison only: the same model on the rows themselves. This trace must never be published.\n")
    with model:
        not_private = pm.sample(chains=4, random_seed=1)

    trace = idata.dp.publish(OUTPUTS / "fair.nc")
    draw_forest(idata, not_private, OUTPUTS / "forest.png")
    dp.plots.release(idata).savefig(OUTPUTS / "release.png", dpi=100)
    dp.plots.budget(ledger).savefig(OUTPUTS / "budget.png", dpi=100)

    print(f"""
Written:
  {trace}
      the private trace, checked and ready to publish: posterior, released counts, report. Read it with
      xarray.open_datatree and print .dp.report()
  {OUTPUTS / "release.png"}
      the ten noised counts from which the private posterior was made, with the interval of the noise
  {OUTPUTS / "budget.png"}
      what was spent of the budget of this data set, and what is left
  {OUTPUTS / "forest.png"}
      private beside not private. It shows the trace made from the rows too: of a table that is not public, keep it""")


if __name__ == "__main__":
    main()
