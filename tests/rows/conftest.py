from tests.step_methods.langevin.conftest import _no_history  # noqa: F401
