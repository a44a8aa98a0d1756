import hashlib
import zipfile

import pytest

import pymc_dp as dp
from pymc_dp.datasets import _sources

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
    with pytest.raises(dp.errors.PrivacyError, match="PYMC_DP_DATA"):
        _sources.zip_member(URL, "table.csv", sha256=DIGEST)
