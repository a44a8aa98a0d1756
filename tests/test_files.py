"""Files stay short enough to be read at one go."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 400


def too_long(root: Path) -> dict[str, int]:
    """Lines of files that are longer and do not say why: "Longer than 400 lines because ..." in them."""
    lengths = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    return {
        name: text.count("\n")
        for name, text in lengths.items()
        if text.count("\n") > LONGEST and f"Longer than {LONGEST} lines because " not in text
    }


def test_no_file_of_the_package_is_longer_without_its_reason_in_it():
    assert too_long(ROOT / "pymc_dp") == {}


def test_a_longer_file_is_found_unless_it_says_why(tmp_path):
    (tmp_path / "long.py").write_text("\n" * 401)
    (tmp_path / "explained.py").write_text('"""Longer than 400 lines because all of it is one table."""' + "\n" * 401)
    (tmp_path / "short.py").write_text("\n" * 400)
    assert too_long(tmp_path) == {"long.py": 401}
