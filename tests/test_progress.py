"""A bar says what is done of how much, and nothing unless it is shown."""

import pytest

from pymc_dp._progress import progress


@pytest.fixture
def ended(monkeypatch):
    """The bars that have ended, which no test draws."""
    bars = []
    monkeypatch.setattr("rich.progress.Progress.stop", lambda self: bars.append(self))
    return bars


def test_bar_says_the_last_words_and_how_many_parts_are_done(ended):
    with progress(True, "first", 5) as advance:
        advance()
        assert not ended
        advance(2, "second")
        advance(0)
    ((task,),) = [bar.tasks for bar in ended]
    assert (task.description, task.completed, task.total) == ("second", 3, 5)
    assert not ended[0].disable


def test_nothing_is_drawn_unless_shown(ended):
    with progress(False, "first", 5) as advance:
        advance()
    assert ended[0].disable
