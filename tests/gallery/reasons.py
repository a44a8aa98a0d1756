"""Why the private posterior of a model is off by more than half a standard deviation, where that was found out."""

WIDER = "exact sums say far less of its standard deviations: the private posterior is 2 to 8 times as wide"
REASONS = {
    "cafes_packed": "with 41 parameters of 400 rows its residual standard deviation is 1.2 to 1.5 times as wide, and "
    "chance moves it by about as much",
    "rats": WIDER,
    "sleep_study": WIDER,
    "rounded_values": "its rows were cut at their bounds, of which its likelihood knows nothing, and clipped scores "
    "say something else of a table that is not of the model; of rows that are, medians are within .1",
    "bambi_wald": "its costs were drawn from a gamma distribution, and clipped scores say something else of a table "
    "that is not of the model",
    "cherry_blossoms": "splines add up to 1 in every row, which rows that are made up do not know: noise counts as "
    "curvature where `a` rises and all of `w` fall, of which no row tells",
    "radon_varying_slopes": "each county has noise of its own on its sum of squares",
    "bangladesh": "its 122 parameters are too many for scores to be followed where they bend",
    "text_messages": "days are private, and half of the budget goes to their sizes: the noise on the sum of every day "
    "is twice as wide, the private posterior 1.2 times, and chance moves its medians by half a standard deviation",
    "dugongs": "the curve is flat for old animals, so that its parameters are nearly one",
    "instrument": "education is a predictor of wages, and a copy of it is observed beside them: rows that are made up "
    "have two that differ; its conditional densities, which docs tell to write, have neither this nor narrow intervals",
    "kline_mechanistic": "under its prior nearly all counts are out of bounds, and the walk does not arrive: the "
    "private posterior is about the prior, and a warning says so",
}
