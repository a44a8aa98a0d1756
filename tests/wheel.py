"""What a stranger does: install the wheel, run the first block of the README, read its file without the package.

Run with ``python -m tests.wheel``, after ``python -m build``: it looks into ``dist``.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[1]
READER = """
import arviz as az, xarray as xr
assert not hasattr(xr.DataTree, "dp")
trace = xr.open_datatree("public.nc")
print(sorted(trace.children), trace.posterior.p.dims)
print(az.summary(trace, var_names=["p"]))
"""


def the(pattern: str) -> Path:
    """Return the one file of this name in ``dist``."""
    found = list((ROOT / "dist").glob(pattern))
    assert len(found) == 1, f"dist must hold one {pattern}, not {[path.name for path in found]}: build it anew"
    return found[0]


def step(said: str, *command: str | Path, cwd: Path) -> None:
    """Run a command away from the sources, and say how long it took."""
    print(f"== {said}", flush=True)
    start = perf_counter()
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYMC_DP"))}
    plain["PYTHONIOENCODING"] = "utf-8"  # Windows writes ε to a terminal, and not to a pipe
    subprocess.run([str(part) for part in command], cwd=cwd, check=True, env=plain)
    print(f"   {perf_counter() - start:.0f} s", flush=True)


def main() -> None:
    wheel, sdist = the("pymc_dp-*.whl"), the("pymc_dp-*.tar.gz")
    (block, *_) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    sizes = "; ".join(f"{path.name} {path.stat().st_size:,} bytes" for path in (wheel, sdist))
    print(f"Python {sys.version.split()[0]}; {sizes}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet")
        step("a wheel from the sdist", *pip, "wheel", "--no-deps", "--wheel-dir", folder, sdist, cwd=folder)
        again = zipfile.ZipFile(folder / wheel.name)
        assert sorted(again.namelist()) == sorted(zipfile.ZipFile(wheel).namelist())
        step("pip install of the wheel", *pip, "install", wheel, cwd=folder)
        # By -c: where processes are spawned, a script would need a guard that the README does not show.
        step("the first block of the README", python, "-c", block, cwd=folder)
        step("uninstall", *pip, "uninstall", "--yes", "pymc-dp", cwd=folder)
        step("the published file, by ArviZ and xarray alone", python, "-c", READER, cwd=folder)


if __name__ == "__main__":
    main()
