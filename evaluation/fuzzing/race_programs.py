"""Tiny programs of two or three threads, with their races by an exhaustive search.

The oracle is independent of the sanitizer. The oracle explores every interleaving of the threads' operations, without
vector clocks. Two accesses race if an interleaving reaches a state in which both are the next operations of two
threads. The two accesses also access the same word, include a write, and are not both atomic. Synchronization only
blocks threads. A state is therefore the tuple of the threads' positions, and a program has few states.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

__all__ = ["Operation", "Program", "Verdict", "judged", "random_program"]

Verb = Literal["read", "write", "add", "barrier", "arrive", "wait", "release", "acquire"]
Point = tuple[int, ...]
WORDS, MBARRIERS, FLAGS = 2, 2, 2
_ACCESSES = {"read", "write", "add"}
_BLOCKING = 0.02  # Two percent of the programs may contain an endless wait.


class Operation(NamedTuple):
    """An operation of a thread, which is a verb and the number of its word, mbarrier or flag."""

    verb: Verb
    number: int = 0

    def conflicts(self, other: Operation) -> bool:
        """Return whether two accesses race if no synchronization orders them."""
        verbs = {self.verb, other.verb}
        return verbs <= _ACCESSES and self.number == other.number and verbs not in ({"read"}, {"add"})


@dataclass(frozen=True)
class Program:
    """A program, which contains the operations of each thread.

    Attributes
    ----------
    threads : tuple of tuple of Operation
    space : {"shared", "global"}
        The state space of the words and flags. For ``"shared"``, the threads are warps of a CTA. For ``"global"``, they
        are CTAs, which share neither barriers nor mbarriers.
    """

    threads: tuple[tuple[Operation, ...], ...]
    space: Literal["shared", "global"] = "shared"

    def count(self, verb: Verb, number: int) -> int:
        """Return the number of occurrences of an operation in all threads."""
        return sum(thread.count(Operation(verb, number)) for thread in self.threads)

    def arrivals(self, number: int) -> int:
        """Return the count of an mbarrier. All arrivals of the program complete the phase of the mbarrier, and the
        count is at least one.
        """
        return max(self.count("arrive", number), 1)


class Verdict(NamedTuple):
    """The places (thread, position) of each pair of accesses that race, and whether threads may wait forever."""

    races: frozenset[frozenset[tuple[int, int]]]
    blocks: bool


def judged(program: Program) -> Verdict:
    """Return the verdict of an exhaustive search on a program."""
    races: set[frozenset[tuple[int, int]]] = set()
    blocks = False
    seen: set[Point] = set()
    open_points: list[Point] = [(0,) * len(program.threads)]
    while open_points:
        point = open_points.pop()
        if point in seen:
            continue
        seen.add(point)
        races.update(_races_at(program, point))
        after = [*_steps(program, point)]
        blocks |= not after and any(_next(program, thread, at) for thread, at in enumerate(point))
        open_points += after
    return Verdict(frozenset(races), blocks)


def _next(program: Program, thread: int, at: int) -> Operation | None:
    operations = program.threads[thread]
    return operations[at] if at < len(operations) else None


def _races_at(program: Program, point: Point) -> Iterator[frozenset[tuple[int, int]]]:
    for (one, at), (other, there) in combinations(enumerate(point), 2):
        first, second = _next(program, one, at), _next(program, other, there)
        if first is not None and second is not None and first.conflicts(second):
            yield frozenset({(one, at), (other, there)})


def _steps(program: Program, point: Point) -> Iterator[Point]:
    """Yield the next states, in which one thread has executed an operation, or all threads have passed a barrier
    together.
    """
    following = [_next(program, thread, at) for thread, at in enumerate(point)]
    if all(each is not None and each.verb == "barrier" for each in following):
        yield tuple(at + 1 for at in point)
    for thread, operation in enumerate(following):
        if operation is not None and operation.verb != "barrier" and not _is_blocked(program, point, operation):
            yield (*point[:thread], point[thread] + 1, *point[thread + 1 :])


def _is_blocked(program: Program, point: Point, operation: Operation) -> bool:
    if operation.verb == "wait":
        return _done(program, point, "arrive", operation.number) < program.arrivals(operation.number)
    if operation.verb == "acquire":
        return not _done(program, point, "release", operation.number)
    return False


def _done(program: Program, point: Point, verb: Verb, number: int) -> int:
    threads = zip(program.threads, point, strict=True)
    return sum(thread[:at].count(Operation(verb, number)) for thread, at in threads)


# ---- random programs ----


def random_program(seed: int) -> Program:
    """Return the program of a seed. Most programs end, because the simulator takes a hundred times as long for the
    other programs.
    """
    draw = random.Random(seed)
    may_block = draw.random() < _BLOCKING
    while judged(program := _drawn(draw)).blocks and not may_block:
        pass
    return program


def _drawn(draw: random.Random) -> Program:
    """Draw two or three threads with up to four operations each, and barriers of all threads."""
    space: Literal["shared", "global"] = draw.choice(("shared", "shared", "global"))
    threads = [[*_operations(draw, space)] for _ in range(draw.choice((2, 2, 3)))]
    for number in range(FLAGS):  # Exactly one thread sets each flag, and it sets the flag once.
        _keep_one(draw, threads, Operation("release", number))
    if space == "shared":
        for _ in range(draw.choice((0, 0, 1, 2))):
            for thread in threads:
                thread.insert(draw.randint(0, len(thread)), Operation("barrier"))
    return Program(tuple(map(tuple, threads)), space)


def _operations(draw: random.Random, space: str) -> Iterator[Operation]:
    verbs: list[Verb] = ["read", "read", "write", "write", "add", "release", "acquire"]
    verbs += ["arrive", "wait"] if space == "shared" else []
    for _ in range(draw.randint(1, 4)):
        verb = draw.choice(verbs)
        yield Operation(verb, draw.randrange(WORDS if verb in _ACCESSES else FLAGS))


def _keep_one(draw: random.Random, threads: list[list[Operation]], operation: Operation) -> None:
    places = [(thread, at) for thread in threads for at, each in enumerate(thread) if each == operation]
    draw.shuffle(places)
    for thread, at in sorted(places[1:], key=lambda place: -place[1]):
        del thread[at]
