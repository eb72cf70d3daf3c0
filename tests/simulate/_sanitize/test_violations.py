"""Tests of the classes of violations, which are frozen, and contain the kind, rule and remedy of their findings."""

import dataclasses

import pytest

from cuda_tma import simulate
from cuda_tma.simulate._ptx import Instruction
from cuda_tma.simulate._sanitize.report import (
    global_violations,
    mbarrier_violations,
    product_violations,
    shared_violations,
    tensor_violations,
    violations,
)
from cuda_tma.simulate._sanitize.report.remedies import RULES
from cuda_tma.simulate._sanitize.report.violation import Violation

MODULES = (
    violations,
    product_violations,
    mbarrier_violations,
    shared_violations,
    tensor_violations,
    global_violations,
)
BASES = (shared_violations.SharedPair, global_violations.GlobalPair)
CLASSES = [each for module in MODULES for name in module.__all__ if (each := getattr(module, name)) not in BASES]
LOAD, STORE = Instruction(("ld",), line=3), Instruction(("st",), line=5)


def made(kind, **facts):
    """Return a violation of a class, whose unspecified fields are zero or empty."""
    required = [each for each in dataclasses.fields(kind) if each.default is dataclasses.MISSING]
    zeros = {each.name: {"str": "", "Instruction": STORE}.get(each.type, 0) for each in required}
    return kind(**{**zeros, "now": LOAD, "lane": 0, **facts})


def test_every_class_is_listed():
    of_any = [each for base in (Violation, *BASES, shared_violations.SharedRace) for each in base.__subclasses__()]
    # For a data class with slots, Python creates a second class with the same name.
    names = {each.__name__ for each in of_any}
    assert {each.__name__ for each in (*CLASSES, *BASES)} == names


@pytest.mark.parametrize("kind", CLASSES, ids=lambda each: each.__name__)
def test_a_class_has_a_row(kind):
    assert kind.KIND in simulate.KINDS
    assert made(kind).rule in RULES.values()
    assert made(kind).remedy
    with pytest.raises(dataclasses.FrozenInstanceError):
        made(kind).lane = 1


def test_a_disputed_violation_is_advice():
    assert made(violations.MapInMemory).severity == "error"
    assert made(violations.MapInMemory, is_disputed=True).severity == "advice"
    assert made(mbarrier_violations.UnexpectedBytes).severity == "advice"


def test_the_cause_is_the_statements():
    assert made(violations.MapInMemory).cause == (id(LOAD),)
    assert made(violations.ChangedMap, other=STORE).cause == (id(STORE), id(LOAD))


def test_the_remedy_of_a_changed_map_names_the_fence_that_it_lacks():
    acquire, release = (made(violations.ChangedMap, other=STORE, lacks=each) for each in ("acquire.gpu", "release"))
    assert "tensormap::generic.acquire" in acquire.remedy
    assert "tensormap::generic.release" in release.remedy


@pytest.mark.parametrize(
    ("access", "other_access", "pair"),
    [("read", "write", (LOAD, STORE)), ("write", "read", (STORE, LOAD)), ("write", "write", None)],
)
def test_a_race_of_a_load_and_a_store_of_threads_may_have_no_effect(access, other_access, pair):
    facts = {"other": STORE, "access": access, "other_access": other_access}
    race = made(global_violations.GlobalRace, **facts)
    assert race.racing_read == pair
    assert dataclasses.replace(race, is_operation=True).racing_read is None


def test_the_remedy_of_a_race_with_a_copy_is_the_wait_on_which_it_completes():
    race = made(shared_violations.SharedRace, other=STORE, completes_on="mbarrier")
    assert "mbarrier.try_wait" in race.remedy
    assert "cp.async.wait_group" in dataclasses.replace(race, completes_on="cp.async").remedy
