"""Tests of the queue of tensor operations: each operation has a number, and takes effect in order."""

from cuda_tma.simulate._tensor_memory.pipe import Pipes


def test_operations_take_effect_up_to_a_number():
    pipes, done = Pipes(), []
    numbers = [pipes.issue(0, 5, lambda each=each: done.append(each)) for each in "abc"]
    other = pipes.issue(1, 6, lambda: done.append("other"))
    assert sorted({*numbers, other}) == [*numbers, other] and len({*numbers, other}) == 4
    assert (pipes.pending_of(5), pipes.pending_of(6)) == (0, 1)
    pipes.run_until(0, numbers[1])
    assert done == ["a", "b"] and pipes.pending_of(5) == 0
    pipes.run_until(0, numbers[2])
    assert done == ["a", "b", "c"] and pipes.pending_of(5) is None and pipes.pending_of(6) == 1
