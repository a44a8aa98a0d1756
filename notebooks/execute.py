"""Execute notebooks in place, and note in each with which version and which code that was done.

`make notebooks` runs all of them; `python notebooks/execute.py notebooks/quickstart.ipynb` runs one.
"""

import ast
import hashlib
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent
CHATTER = re.compile(
    r"Initializing|Sequential sampling|Multiprocess sampling|\w+: \[|Sampling|We recommend running|>"
    r"|Pricing every method"
    r"|.*WeakGuaranteeWarning: ε = 1e\+06 "  # which stands for no privacy where methods are compared
)


def digest(cells) -> str:
    """Of all code, in order, however it is laid out: a cell that was changed since it was run is found by it."""
    code = [ast.unparse(ast.parse("".join(cell["source"]))) for cell in cells if cell["cell_type"] == "code"]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()


def without_chatter(outputs: list) -> list:
    """What a cell has put out, without what is said on stderr of samplers that start, and of ε = 1e6."""
    return [one for one in outputs if one.get("name") != "stderr" or not CHATTER.match("".join(one["text"]))]


def main(paths: list[Path]) -> None:
    import nbformat
    from nbclient import NotebookClient

    for path in paths:
        print(path, flush=True)
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=None, resources={"metadata": {"path": str(path.parent)}}).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # when each cell was run
            if cell.cell_type == "code":
                cell.outputs = without_chatter(cell.outputs)
        notebook.metadata["pymc_dp"] = {"version": version("pymc-dp"), "code": digest(notebook.cells)}
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main([Path(name).resolve() for name in sys.argv[1:]] or sorted(ROOT.rglob("*.ipynb")))
