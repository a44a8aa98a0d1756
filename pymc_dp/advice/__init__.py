"""What a model could be sampled by, what that loses, and what would help: the findings of ``dp.explain``."""
