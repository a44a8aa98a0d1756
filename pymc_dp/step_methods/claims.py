"""How many chains of one funded step have begun, counted across processes."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import weakref
from pathlib import Path

from pymc_dp.errors import BudgetExceeded


class Claims:
    """A folder of tokens, one per chain that was paid for; a chain takes its token before it sees a row.

    A step method learns neither how many chains there are nor which one it runs, is copied into worker processes whose
    state never comes back, and may be handed to ``pm.sample`` twice. Files made exclusively are seen by all of them.

    Parameters
    ----------
    chains : int
        Number of chains paid for.

    Attributes
    ----------
    identity : int
        A number of 52 random bits, public, that every state of these chains carries.
    """

    def __init__(self, chains: int) -> None:
        self.chains = chains
        self.identity = secrets.randbits(52)
        self.folder = tempfile.mkdtemp(prefix="pymc_dp_")
        self._owner = os.getpid()
        weakref.finalize(self, _remove, self.folder, self._owner)

    def __getstate__(self) -> dict[str, object]:
        return {"chains": self.chains, "folder": self.folder, "identity": self.identity}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def take(self, tune: int, draws: int, *, secure: bool = True) -> int:
        """Take the token of one chain of `tune` + `draws` states, whose randomness is `secure` or seeded.

        Returns
        -------
        int
            Which token it is, from 0.

        Raises
        ------
        BudgetExceeded
            If all chains that were paid for have begun, or earlier ones had another length.
        """
        wanted = {"tune": tune, "draws": draws, "secure": secure}
        for token in range(self.chains):
            path = Path(self.folder) / str(token)
            try:
                with path.open("x", encoding="utf-8") as file:
                    json.dump(wanted, file)
            except FileExistsError:
                begun = _read(path)
                if (begun["tune"], begun["draws"]) != (tune, draws):
                    raise BudgetExceeded(
                        f"This step pays for {self.chains} chains of one length; one has begun already with other "
                        f"numbers than tune={tune}, draws={draws}. Make a new step, with a budget of its own."
                    ) from None
                continue
            except FileNotFoundError:
                break
            return token
        raise BudgetExceeded(
            f"This step was funded for {self.chains} chain{'s' * (self.chains != 1)}, and all of them have begun: "
            "another one would be another release. Pass chains= to the step and the same chains= to pm.sample, or "
            "make a new step with a budget of its own."
        )

    def taken(self) -> list[dict[str, int]]:
        """Length and kind of randomness of the chains that have begun."""
        paths = [Path(self.folder) / str(token) for token in range(self.chains)]
        return [_read(path) for path in paths if path.exists()]


def _read(path: Path) -> dict[str, int]:
    for _ in range(1000):  # another process may have made the file and not yet written it
        text = path.read_text(encoding="utf-8")
        if text.endswith("}"):
            break
    result: dict[str, int] = json.loads(text)
    return result


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
