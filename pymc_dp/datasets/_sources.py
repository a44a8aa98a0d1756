"""Where a table comes from: a local copy first, else the original source, never unchecked."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pooch

from pymc_dp._optional import require
from pymc_dp.errors import PrivacyError

if TYPE_CHECKING:
    import pandas as pd

FOLDER_VARIABLE = "PYMC_DP_DATA"


class DatasetError(PrivacyError, OSError):
    """A table cannot be had, or is not the one it should be.

    Examples
    --------
    >>> check(b"other rows", "0" * 64, what="The survey", remedy="Get it from its publisher.")
    Traceback (most recent call last):
    pymc_dp.datasets._sources.DatasetError: The survey is not the published table: ...
    """


def local_copy(name: str) -> Path | None:
    """Return the path of `name` in the folder that PYMC_DP_DATA names, or None where there is no such file."""
    folder = os.environ.get(FOLDER_VARIABLE)
    path = Path(folder) / name if folder else None
    return path if path is not None and path.is_file() else None


def check(content: bytes, sha256: str, *, what: str, remedy: str) -> None:
    """Refuse `content` whose digest is not `sha256`."""
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DatasetError(f"{what} is not the published table: its sha256 is {found}, not {sha256}. {remedy}")


def local_table(
    name: str, columns: Sequence[str], serialise: Callable[[pd.DataFrame], bytes], *, sha256: str, made: str, by: str
) -> pd.DataFrame:
    """Return checked columns of a parquet file that is never downloaded; `made` says what a copy is made from.

    The digest is that of `serialise` of these columns: a file may be packed anew without any change to them.
    """
    pandas = require("pandas", by=by)
    require("pyarrow", by=by)
    path = local_copy(name)
    if path is None:
        raise DatasetError(
            f"{by} downloads nothing. Set {FOLDER_VARIABLE} to a folder with a copy at {name}: {made} (see {by})."
        )
    table = pandas.read_parquet(path)
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise DatasetError(f"{path} lacks the columns {', '.join(missing)}. Replace it by a copy of the known table.")
    found: pd.DataFrame = table[list(columns)]
    check(serialise(found), sha256, what=str(path), remedy="Replace it by a copy of the known table.")
    return found


def zip_member(url: str, member: str, *, sha256: str) -> bytes:
    """Return one checked file of a zip archive, downloaded once.

    The digest is that of the file: the archive around it may be packed anew without any change to the table.
    """
    try:
        archive = Path(pooch.retrieve(url, known_hash=None, path=pooch.os_cache("pymc_dp")))
    except OSError as error:
        reason = type(error).__name__
        remedy = f"Set {FOLDER_VARIABLE} to a folder with a copy."
        raise DatasetError(f"{url} could not be downloaded ({reason}). {remedy}") from error
    try:
        with zipfile.ZipFile(archive) as opened:
            content = opened.read(member)
        check(content, sha256, what=f"{member} of {url}", remedy="Try again later: it is downloaded afresh.")
    except (zipfile.BadZipFile, KeyError) as error:
        archive.unlink()
        raise DatasetError(f"{url} holds no readable {member}. Try again later: it is downloaded afresh.") from error
    except DatasetError:
        archive.unlink()
        raise
    return content
