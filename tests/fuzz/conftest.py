from tests.step_methods.quick import interpreted

pytest_runtest_protocol = interpreted(__file__, slow=True)
