import hashlib
import zipfile

import pytest

from pymc_dp.datasets import _sources
from pymc_dp.errors import PrivacyError

URL = "https://example.org/table.zip"
CONTENT = b"a, b\n1, 2\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def download(tmp_path, monkeypatch):
    """A function that decides which bytes a download brings."""
    archive = tmp_path / "table.zip"

    def bring(member: str | None = "table.csv", content: bytes = CONTENT):
        archive.write_bytes(b"no zip file")
        if member is not None:
            with zipfile.ZipFile(archive, "w") as opened:
                opened.writestr(member, content)
        monkeypatch.setattr(_sources.pooch, "retrieve", lambda *args, **kwargs: str(archive))
        return archive

    return bring


def test_member_with_the_published_digest_is_returned(download):
    archive = download()
    assert _sources.zip_member(URL, "table.csv", sha256=DIGEST) == CONTENT
    assert archive.exists()


@pytest.mark.parametrize(
    "brought",
    [("table.csv", CONTENT + b"3, 4\n"), ("other.csv", CONTENT), (None, b"")],
    ids=["altered", "absent", "broken"],
)
def test_any_other_download_is_refused_and_forgotten(download, brought):
    archive = download(*brought)
    with pytest.raises(_sources.DatasetError, match=r"table\.csv"):
        _sources.zip_member(URL, "table.csv", sha256=DIGEST)
    assert not archive.exists()


def test_failed_download_says_what_to_do(monkeypatch):
    def fail(*args, **kwargs):
        raise ConnectionError

    monkeypatch.setattr(_sources.pooch, "retrieve", fail)
    with pytest.raises(PrivacyError, match="PYMC_DP_DATA"):
        _sources.zip_member(URL, "table.csv", sha256=DIGEST)


def test_local_copy_is_found_only_where_the_variable_points(tmp_path, monkeypatch):
    (tmp_path / "table.parquet").touch()
    monkeypatch.setenv("PYMC_DP_DATA", str(tmp_path))
    assert _sources.local_copy("table.parquet") == tmp_path / "table.parquet"
    assert _sources.local_copy("other.parquet") is None
    for nowhere in ("", str(tmp_path / "no_such_folder")):
        monkeypatch.setenv("PYMC_DP_DATA", nowhere)
        assert _sources.local_copy("table.parquet") is None
    monkeypatch.delenv("PYMC_DP_DATA")
    assert _sources.local_copy("table.parquet") is None


def test_missing_package_is_named_with_the_way_to_install_it():
    with pytest.raises(ImportError, match="load_x needs no_such_package.*pip install no_such_package"):
        _sources.require("no_such_package.part", by="load_x")
