"""Violations are frozen values, and each class states the kind, the rule and the remedy of its findings."""

import dataclasses

import pytest

from cuda_tma import simulate
from cuda_tma.simulate._ptx import Instruction
from cuda_tma.simulate._sanitize.report import product_violations, violations
from cuda_tma.simulate._sanitize.report.remedies import RULES
from cuda_tma.simulate._sanitize.report.violation import Violation

CLASSES = [getattr(module, name) for module in (violations, product_violations) for name in module.__all__]
LOAD, STORE = Instruction(("ld",), line=3), Instruction(("st",), line=5)


def made(kind, **facts):
    """Return a violation whose other facts are zero."""
    required = [each.name for each in dataclasses.fields(kind) if each.default is dataclasses.MISSING]
    return kind(**{**dict.fromkeys(required, 0), "now": LOAD, "lane": 0, **facts})


def test_every_class_is_listed():
    names = {each.__name__ for each in Violation.__subclasses__()}  # slots make a second class of each name
    assert {each.__name__ for each in CLASSES} == names


@pytest.mark.parametrize("kind", CLASSES, ids=lambda each: each.__name__)
def test_a_class_has_a_row(kind):
    assert kind.KIND in simulate.KINDS
    assert kind.RULE in RULES
    assert kind.REMEDY
    with pytest.raises(dataclasses.FrozenInstanceError):
        made(kind).lane = 1


def test_a_disputed_violation_is_advice():
    assert made(violations.MapInMemory).severity == "error"
    assert made(violations.MapInMemory, is_disputed=True).severity == "advice"
    assert made(violations.UnexpectedBytes).severity == "advice"


def test_the_cause_is_the_statements():
    assert made(violations.MapInMemory).cause == (id(LOAD),)
    assert made(violations.ChangedMap, other=STORE).cause == (id(STORE), id(LOAD))


def test_the_remedy_of_a_changed_map_names_the_fence_that_it_lacks():
    acquire, release = (made(violations.ChangedMap, other=STORE, lacks=each) for each in ("acquire.gpu", "release"))
    assert "tensormap::generic.acquire" in acquire.remedy
    assert "tensormap::generic.release" in release.remedy
