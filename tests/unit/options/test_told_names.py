"""A message could tell a name that nobody meant, or hundreds of names."""

import pytest

from pyhudi.errors import Invalid
from pyhudi.options.names import check_known
from pyhudi.options.told_names import listed, nearest_name


@pytest.mark.parametrize(
    "name,known",
    [
        ("nun", "num"), ("nn", "n"), ("uper", "upper"), ("CITY", "city"), ("citty", "City"),
        ("starts_with", "startswith"), ("SIMPEL", "SIMPLE"),
        ("hoodie.clean.commits.retaned", "hoodie.clean.commits.retained"),
    ],
)  # fmt: skip
def test_a_misspelled_name_is_told(name: str, known: str) -> None:
    assert nearest_name(name, ["zzz", known]) == known


@pytest.mark.parametrize(
    "name,known",
    [
        ("curent_date", "to_date"),
        ("hoodie.x", "hoodie.index.type"),
        ("hoodie.nothing", "hoodie.metrics.on"),
        ("a", "b"),
    ],
)
def test_a_name_that_only_begins_or_ends_alike_is_not_told(name: str, known: str) -> None:
    assert nearest_name(name, [known]) is None


@pytest.mark.parametrize("name", ["hoodie.x", "hoodie.nothing"])
def test_no_option_is_near_a_name_of_nobody(name: str) -> None:
    with pytest.raises(Invalid, match="no known name is near it"):
        check_known(name)


def test_of_many_names_the_first_are_listed() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(["a", "b", "c"], "; ", most=2) == "a; b and 1 more"
    assert listed([str(n) for n in range(2_020)]).endswith("18, 19 and 2,000 more")
    assert listed([]) == ""
