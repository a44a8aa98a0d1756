"""Speed by pytest-benchmark: `make benchmark` prints each thing beside its reference, as ratios; nothing is judged."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]
