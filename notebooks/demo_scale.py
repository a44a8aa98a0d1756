"""Ten million simulated hospital stays in Parquet files, a hierarchical model of 100 hospitals, ε = 1.

Run it with `make demo-scale`. The files (200 MB) are made in a temporary folder, which is removed at the end; rows are
read in blocks, so that memory does not grow with their number.
"""

import tempfile
from pathlib import Path
from time import perf_counter

import arviz_plots as azp
import matplotlib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pymc as pm

import pymc_dp as dp

matplotlib.use("Agg")

N_HOSPITALS, N_FILES, ROWS_A_FILE = 100, 10, 1_000_000
OUTPUTS = Path(__file__).resolve().parents[1] / "outputs"


def simulate(folder: Path) -> np.ndarray:
    """Write the files; return the share of readmissions of each hospital that they were simulated with."""
    rng = np.random.default_rng(2026)
    shares = 1 / (1 + np.exp(-rng.normal(-1.5, 0.4, N_HOSPITALS)))
    for place in range(N_FILES):
        hospital = rng.integers(0, N_HOSPITALS, ROWS_A_FILE).astype(np.int16)
        columns = {
            "hospital": hospital,
            "readmitted": rng.random(ROWS_A_FILE) < shares[hospital],
            "log_days": rng.normal(1.2 + shares[hospital], 0.7).astype(np.float32),
        }
        pq.write_table(pa.table(columns), folder / f"stays_{place}.parquet")
    return shares


def build_model() -> pm.Model:
    """An ordinary PyMC model; its three rows are dummies that say which columns there are, and of which dtypes."""
    with pm.Model(coords={"hospital": np.arange(N_HOSPITALS)}) as model:
        hospital = pm.Data("hospital_index", np.zeros(3, dtype=int))
        level = pm.Normal("level", pm.Normal("mean", 0, 2), pm.HalfNormal("spread", 1), dims="hospital")
        share = pm.Deterministic("share", pm.math.invlogit(level), dims="hospital")
        pm.Bernoulli("readmitted", share[hospital], observed=np.zeros(3, dtype=int))
        days = pm.Normal("days", 1, 1, dims="hospital")
        pm.Normal("log_days", days[hospital], pm.HalfNormal("sd", 1), observed=np.zeros(3))
    return model


def peak_memory() -> str:
    status = Path("/proc/self/status")
    if not status.exists():
        return "not known on this system"
    return next(line.split(":")[1].strip() for line in status.read_text().splitlines() if line.startswith("VmHWM"))


def main() -> None:
    azp.style.use("arviz-variat")
    OUTPUTS.mkdir(exist_ok=True)
    model = build_model()
    domain = dp.Domain(bounds={"log_days": (-1.0, 4.0)})
    with tempfile.TemporaryDirectory() as folder:
        print(f"1. Simulate {N_FILES * ROWS_A_FILE:.0e} rows in {N_FILES} files.")
        shares = simulate(Path(folder))
        rows = dp.Parquet(folder, {"hospital_index": "hospital", "readmitted": "readmitted", "log_days": "log_days"})
        print("\n2. Before anything is spent: what is private, what it would cost, what is assumed public.\n")
        print(dp.explain(model, domain, rows=rows).full())
        print("\n3. Spend ε = 1 of a budget of 2: the files are read once, in blocks.\n")
        ledger = dp.Ledger(epsilon=2.0)
        start = perf_counter()
        with model:
            idata = dp.sample(epsilon=1.0, domain=domain, rows=rows, ledger=ledger, chains=2, random_seed=1)
    print(f"\nRelease and chains took {perf_counter() - start:.0f} s; peak memory of the process: {peak_memory()}.")
    print(ledger)
    low, high = np.quantile(idata["posterior"]["share"], [0.05, 0.95], axis=(0, 1))
    print(f"90% intervals hold the share of {np.mean((low < shares) & (shares < high)):.0%} of the hospitals.")
    path = OUTPUTS / "demo_scale_shares.png"
    draw(idata, shares, path)
    print(f"Wrote {path}")


def draw(idata, shares: np.ndarray, path: Path) -> None:
    """How far intervals of all hospitals are from the shares that rows were simulated with."""
    from matplotlib import pyplot as plt

    low, middle, high = 100 * (np.quantile(idata["posterior"]["share"], [0.05, 0.5, 0.95], axis=(0, 1)) - shares)
    order, places = np.argsort(shares), np.arange(N_HOSPITALS)
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    axes.axhline(0, color="black", lw=1)
    axes.errorbar(places, middle[order], [(middle - low)[order], (high - middle)[order]], fmt=".")
    title = "Shares of readmissions less their true values, ε = 1"
    axes.set(xlabel="hospital, by its share", ylabel="percentage points, with 90% intervals", title=title)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
