"""Pictures of every page of the site, wide and narrow, light and dark, to be looked at: `make screenshots`.

Chromium takes them (Debian: `apt-get install chromium`), of the site in outputs/docs, into outputs/screenshots. Pages of
single names look alike: five of them are taken. `python docs/screenshots.py start gallery` takes some pages only.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE, PICTURES = ROOT / "outputs" / "docs", ROOT / "outputs" / "screenshots"
WIDTHS = (1280, 500)
THEMES = ("light", "dark")
LONGEST = 12_000
"""Dots of a picture from top to bottom."""
LEFT_OUT = ("search", "genindex", "py-modindex")


def main(names: list[str]) -> None:
    browser = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if browser is None:
        sys.exit("No Chromium was found. On Debian: apt-get install chromium.")
    pages = sorted(
        path.relative_to(SITE).with_suffix("").as_posix()
        for path in SITE.rglob("*.html")
    )
    pages = [page for page in pages if page not in LEFT_OUT and "_static" not in page]
    single = [page for page in pages if "/generated/" in page]
    pages = names or [page for page in pages if page not in single[5:]]
    with tempfile.TemporaryDirectory() as profile:
        for page in pages:
            for theme in THEMES:
                for width in WIDTHS:
                    print(_take(browser, profile, page, theme, width))


def _take(browser: str, profile: str, page: str, theme: str, width: int) -> Path:
    """Photograph a page; a window of Chromium is never narrower than 500 dots."""
    target = PICTURES / f"{page.replace('/', '.')}-{width}-{theme}.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    source = SITE / f"{page}.html"
    themed = source.with_name(f".{source.name}")
    text = source.read_text(encoding="utf-8")
    choice = f"<script>localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}');</script>"
    short = "<style>body, body * { min-height: 0 !important; }</style>"  # the end of a page stands below its text
    text = text.replace("<head>", f"<head>{choice}", 1).replace("</head>", f"{short}</head>", 1)
    themed.write_text(text, encoding="utf-8")
    options = (
        "--headless",
        "--no-sandbox",
        "--hide-scrollbars",
        "--disable-gpu",
        f"--user-data-dir={profile}",
    )
    shot = (
        f"--window-size={width},{LONGEST}",
        "--virtual-time-budget=1500",
        f"--screenshot={target}",
    )
    try:
        subprocess.run(
            [browser, *options, *shot, themed.as_uri()],
            check=True,
            capture_output=True,
            timeout=120,
        )
    finally:
        themed.unlink()
    _cut_off_the_empty_end(target)
    return target


def _cut_off_the_empty_end(picture: Path) -> None:
    import numpy as np
    from matplotlib import image

    dots = image.imread(picture)
    rows = np.flatnonzero((dots != dots[-1:, :1]).any(axis=(1, 2)))
    image.imsave(picture, dots[: rows[-1] + 20] if len(rows) else dots)


if __name__ == "__main__":
    main(sys.argv[1:])
