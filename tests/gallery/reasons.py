"""Why the private posterior of a model is off by more than half a standard deviation, where that was found out."""

WIDER = "exact sums say far less of its standard deviations: the private posterior is 2 to 8 times as wide"
REASONS = {
    "cafes_packed": "its groups are an array without a name that is met twice, and each time a column of its own: 800 "
    "cells in place of 40; " + WIDER,
    "rats": WIDER,
    "sleep_study": WIDER,
    "coal_mining_change_point": "each year is a cell of a single row whose size is private, and sums of such cells are "
    "taken to be normal; with `public=['years']`, medians are within 0.1 to 0.2",
    "text_messages": "days are private, so that the noise on the sum of every day is twice as wide, and the private "
    "posterior wider, too",
    "rounded_values": "its rows were cut at their bounds, of which its likelihood knows nothing, and clipped scores "
    "say something else of a table that is not of the model; of rows that are, medians are within .1",
    "bangladesh": "its 122 parameters are too many for scores to be followed where they bend",
    "dugongs": "the curve is flat for old animals, so that its parameters are nearly one",
    "instrument": "education is a predictor of wages, and a copy of it is observed beside them: rows that are made up "
    "have two that differ; its conditional densities, which docs tell to write, have neither this nor narrow intervals",
    "kline_mechanistic": "under its prior nearly all counts are out of bounds, and the walk does not arrive: the "
    "private posterior is about the prior, and a warning says so",
}
