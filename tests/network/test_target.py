"""The hosts to be measured, as a person names them."""

from __future__ import annotations

import pytest

from phalanx.errors import InputError
from phalanx.network.target import Target, targets


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("n1", [("n1", "n1")]),
        ("n[08-09],gw", [("n08", "n08"), ("n09", "n09"), ("gw", "gw")]),
        ("a=10.0.0.1,b=fd00::2", [("a", "10.0.0.1"), ("b", "fd00::2")]),
        ("me@n1", [("me@n1", "n1")]),
    ],
)
def test_a_host_has_a_name_and_an_address(text, found):
    assert targets(text) == tuple(Target(name=name, address=address) for name, address in found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a name is missing"),
        ("n1,,n2", "a name is missing"),
        ("n[1", "bracket"),
        ("n1,n1", "the name n1 is there twice"),
        ("a=x,b=x", "the address x is there twice"),
        ("a=", "'a=' is no host"),
        ("=x", "'=x' is no host"),
        ("-oProxyCommand=x", "is no host"),
        ("n 1", "is no host"),
        ("n[1-999]", "999 hosts are more than the 256"),
    ],
)
def test_what_is_no_host_is_refused_by_name(text, said):
    with pytest.raises(InputError, match=r"--measure") as wrong:
        targets(text)
    assert said in str(wrong.value)
