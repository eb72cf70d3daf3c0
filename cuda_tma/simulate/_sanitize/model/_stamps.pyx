# cython: boundscheck=False, wraparound=False, cdivision=True
"""The cells of a shadow, in C because an access compares each of its units, and a ``wgmma`` has thousands of units."""

from libc.stdint cimport int32_t, int64_t

cdef enum:
    COLUMN_BITS = 20  # A stamp has 20 low bits for the column; the epoch is above these bits.
    SLOT_BITS = 16  # A moment has 16 low bits for the slot; the time is above these bits.
    UNUSED = 0
    WARP = 32

ctypedef struct Units:
    # The first unit of each access is (positions[i] + offset) >> shift; an access has `each` units.
    const int64_t* positions
    Py_ssize_t count, each
    int64_t offset
    int shift

cdef inline Units units_of(const int64_t[::1] positions, Py_ssize_t each, int64_t offset=0, int shift=0) noexcept nogil:
    return Units(&positions[0], positions.shape[0], each, offset, shift)

cdef inline Py_ssize_t first_of(const Units* units, Py_ssize_t i) noexcept nogil:
    return (units.positions[i] + units.offset) >> units.shift

cdef class ClockRows:
    """The clocks of all lanes as memory views, so that an access of threads does not open three arrays again.

    Parameters
    ----------
    rows, warps : numpy.ndarray of int32, [row, lane, column], [row, warp, column]
        The column of a lane among the `threads` columns of threads contains its epoch.
    started : numpy.ndarray of int64, [slot]
        The time at which the cluster of each slot began.
    visible : int
        The row to compare with earlier accesses; timed cells compare earlier reads with the first row.
    threads : int
    """

    cdef const int32_t[:, :, :] rows, warps
    cdef const int64_t[::1] started
    cdef int visible
    cdef Py_ssize_t threads

    def __init__(self, rows, warps, started, int visible, Py_ssize_t threads):
        self.rows, self.warps, self.started = rows, warps, started
        self.visible, self.threads = visible, threads

cdef class Stamps:
    """The stamps of accesses to each unit, in several places for reads and a last place for the last write.

    If the record of an access may outlive its cluster, the cells are timed. Each stamp then has a moment, which is the
    slot of a cluster and a time. Otherwise the columns of all stamps belong to the accessing cluster.

    Attributes
    ----------
    values, notes : numpy.ndarray, [place, unit]
        The stamps and their notes. A note is two times the site, plus one if the access was strong.
    moments : numpy.ndarray or None, [place, unit]
        The moment of each stamp; None if the cells are not timed.
    used : int
        A bit for each place that is in use.
    """

    cdef readonly object values
    cdef readonly object notes
    cdef readonly object moments
    cdef readonly int used
    cdef int64_t[:, ::1] _values
    cdef int64_t[:, ::1] _moments
    cdef int32_t[:, ::1] _notes
    cdef bint _timed
    cdef int _last

    def __init__(self, values, notes, moments=None):
        self.values = self._values = values
        self.notes = self._notes = notes
        self._timed, self._last = moments is not None, len(values) - 1
        self.moments = moments
        self.used = 0
        if self._timed:
            self._moments = moments
            self.used = (2 << self._last) - 1  # Code outside the class may write to the arrays.

    cdef int _readers(self) noexcept nogil:
        return self.used & ~(1 << self._last)

    def late(
        self, int places, const int64_t[::1] first, Py_ssize_t each,
        const int32_t[:, :] lanes, const int32_t[:, :] warps, const int64_t[::1] who, bint strong
    ):
        """Return the places with a stamp that does not happen before the present accesses, if cells are not timed.

        Parameters
        ----------
        places : int
            A bit for each place to compare, as in the result.
        first : numpy.ndarray of int64
            The first unit of each access, which has `each` units.
        lanes, warps : numpy.ndarray of int32, [lane, column], [warp, column]
            The clocks of lanes and warps, as in `Known`.
        who : numpy.ndarray of int64
            The lane of each access, or one lane that makes all accesses.
        strong : bool
            Whether earlier strong accesses are ignored.
        """
        cdef int place, found = 0
        cdef Units units = units_of(first, each)
        with nogil:
            for place in range(self._last + 1):
                if places >> place & 1 and self._is_late(place, &units, lanes, warps, who, strong, NULL, 1, False):
                    found |= 1 << place
        return found

    cdef bint _is_late(
        self, int place, const Units* units, const int32_t[:, :] lanes, const int32_t[:, :] warps,
        const int64_t[::1] who, bint strong, const int64_t* started, Py_ssize_t threads,
        bint released
    ) noexcept nogil:
        cdef const int64_t* stamps = &self._values[place, 0]
        cdef Py_ssize_t i, unit, first
        cdef int64_t stamp, epoch, column, known = UNUSED, known_at = 0, lane = who[0], moment = 0, slot, time
        for i in range(units.count):
            if who.shape[0] > 1:
                lane, known = who[i], UNUSED
            first = first_of(units, i)
            for unit in range(first, first + units.each):
                stamp = stamps[unit]
                if stamp == UNUSED or (strong and self._notes[place, unit] & 1):
                    continue
                if started is not NULL:
                    moment = self._moments[place, unit]
                if stamp == known and moment == known_at:
                    continue
                column, epoch = stamp & ((1 << COLUMN_BITS) - 1), stamp >> COLUMN_BITS
                if started is NULL:
                    if lanes[lane, column] < epoch and warps[lane // WARP, column] < epoch:
                        return True
                else:
                    slot, time = moment & ((1 << SLOT_BITS) - 1), moment >> SLOT_BITS
                    if (
                        slot != lane // threads or time < started[slot]
                        or (lanes[lane, column] < epoch and warps[lane // WARP, column] < epoch)
                    ) and (
                        released or (lanes[lane, threads + slot] < time and warps[lane // WARP, threads + slot] < time)
                    ):
                        return True
                known, known_at = stamp, moment
        return False

    def touch(
        self, const int64_t[::1] positions, Py_ssize_t each, ClockRows clocks not None, const int64_t[::1] who,
        bint strong, bint writes, bint reads, int place, int note, int64_t now=0, int64_t offset=0, int shift=0,
        bint released=False
    ):
        """Record accesses of threads if all conflicting accesses happen before them; otherwise do nothing.

        Reads must follow the last writes. Writes must also follow the reads, which the cells then no longer contain.

        Parameters
        ----------
        positions : numpy.ndarray of int64
            The first unit of each access, which has `each` units, is ``position + offset >> shift``.
        who, strong
            The lanes and the flag, as for `late`.
        clocks : ClockRows
        reads : bool
            Whether each accessed unit must have been written.
        place : int
            The place of reads; -1 if the number of the warp selects the place.
        note : int
            Two times the site, plus one if the accesses are strong.
        now : int
            The present time, for timed cells only.
        released : bool
            Whether releases limit the order between clusters. Accesses of other clusters then count as unordered.

        Returns
        -------
        int
            The result: 0 if no access is recorded, 1 if all are recorded, 2 if an access has replaced another of them.
        """
        cdef Units units = units_of(positions, each, offset, shift)
        cdef int looked = 1 << self._last | (self._readers() if writes else 0), result = 0
        with nogil:
            if self._holds(&units) and not (reads and self._is_unwritten(&units)):
                if not self._any_late(looked, &units, clocks, who, strong, released):
                    result = self._put_own(&units, clocks, who, writes, place, note, now)
                    if writes:
                        self._clear(self._readers(), &units)
        return result

    def follow(
        self, int places, const int64_t[::1] positions, Py_ssize_t each, ClockRows clocks not None,
        const int64_t[::1] who, bint released, int64_t offset, int shift
    ):
        """Return whether accesses of threads follow the stamps of some places, as `touch` requires."""
        cdef Units units = units_of(positions, each, offset, shift)
        return self._holds(&units) and not self._any_late(places, &units, clocks, who, False, released)

    cdef bint _any_late(
        self, int places, const Units* units, ClockRows clocks, const int64_t[::1] who, bint strong, bint released
    ) noexcept nogil:
        cdef const int64_t* began = &clocks.started[0] if self._timed else NULL
        cdef int at, row
        for at in range(self._last + 1):
            row = clocks.visible if at == self._last or not self._timed else 0
            if places >> at & 1 and self._is_late(
                at, units, clocks.rows[row], clocks.warps[row], who, strong, began, clocks.threads, released
            ):
                return True
        return False

    cdef int _put_own(
        self, const Units* units, ClockRows clocks, const int64_t[::1] who, bint writes, int place, int note,
        int64_t now
    ) noexcept nogil:
        cdef Py_ssize_t i, unit, first, threads = clocks.threads
        cdef int64_t lane, stamp
        cdef int at
        for i in range(units.count):
            lane, first = who[i], first_of(units, i)
            stamp = <int64_t>clocks.rows[0, lane, lane % threads] << COLUMN_BITS | lane % threads
            at = self._last if writes else place if place >= 0 else <int>(lane // WARP % self._last)
            self.used |= 1 << at
            self._fill(at, first, first + units.each, stamp, note, now << SLOT_BITS | lane // threads)
        for i in range(units.count if writes else 0):
            lane, first = who[i], first_of(units, i)
            stamp = <int64_t>clocks.rows[0, lane, lane % threads] << COLUMN_BITS | lane % threads
            for unit in range(first, first + units.each):
                if self._values[self._last, unit] != stamp:
                    return 2
                if self._timed and self._moments[self._last, unit] != (now << SLOT_BITS | lane // threads):
                    return 2
        return 1

    cdef bint _holds(self, const Units* units) noexcept nogil:
        cdef Py_ssize_t i, first
        for i in range(units.count):
            first = first_of(units, i)
            if first < 0 or first + units.each > self._values.shape[1]:
                return False
        return True

    cdef bint _is_unwritten(self, const Units* units) noexcept nogil:
        cdef Py_ssize_t i, unit, first
        for i in range(units.count):
            first = first_of(units, i)
            for unit in range(first, first + units.each):
                if self._values[self._last, unit] == UNUSED:
                    return True
        return False

    def operate(
        self, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, ::1] clock, int row_of_writes,
        int row_of_reads, int other_row, bint strong, int place, bint reads_written, int64_t stamp, int note,
        int64_t moment=0, int64_t started=0, Py_ssize_t threads=0
    ):
        """Record an operation if all conflicting accesses happen before it; otherwise do nothing.

        Parameters
        ----------
        first : numpy.ndarray of int64
            The first unit of each access, which has `each` units.
        clock : numpy.ndarray of int32, [row, column]
            The clock of the operation. A write precedes the operation if `row_of_writes` and `other_row` contain the
            write. A read precedes the operation if `row_of_reads` and `other_row` contain the read.
        other_row : int
            The index of the second row; -1 if the first row suffices, which only timed cells allow.
        place : int
            The place of the accesses. The last place is for writes. A write must also follow the reads, and removes
            them.
        reads_written : bool
            Whether each unit that the operation reads must have been written.
        moment, started, threads : int
            For timed cells only: the moment of the operation, the time at which its cluster began, and the number of
            columns of threads. The columns of threads are ignored in `other_row`, because their fences are for shared
            memory.
        """
        cdef int at, last = self._last
        cdef Py_ssize_t i
        cdef int looked = 1 << last | (self._readers() if place == last else 0)
        cdef bint known = True
        cdef const int32_t* other = &clock[other_row, 0] if other_row >= 0 else NULL
        with nogil:
            for at in range(last + 1):
                if looked >> at & 1:
                    known = known and self._is_known(
                        at, first, each, &clock[row_of_writes if at == last else row_of_reads, 0], other, strong,
                        reads_written and at == last > place, moment & ((1 << SLOT_BITS) - 1), started, threads
                    )
            if known:
                for i in range(first.shape[0]):
                    self._fill(place, first[i], first[i] + each, stamp, note, moment)
                    for at in range(last if place == last else 0):
                        if self.used >> at & 1:
                            fill(&self._values[at, 0], first[i], first[i] + each, UNUSED)
                self.used |= 1 << place
        return known

    cdef bint _is_known(
        self, int place, const int64_t[::1] first, Py_ssize_t each, const int32_t* row, const int32_t* other,
        bint strong, bint reads, int64_t slot, int64_t started, Py_ssize_t threads
    ) noexcept nogil:
        if self._timed:
            return self._timed_is_known(place, first, each, row, other, slot, started, threads)
        cdef const int64_t* stamps = &self._values[place, 0]
        cdef Py_ssize_t i, unit
        cdef int64_t stamp, epoch, column, known = UNUSED
        for i in range(first.shape[0]):
            for unit in range(first[i], first[i] + each):
                stamp = stamps[unit]
                if stamp == UNUSED and reads:
                    return False
                if stamp == known or stamp == UNUSED or (strong and self._notes[place, unit] & 1):
                    continue
                column, epoch = stamp & ((1 << COLUMN_BITS) - 1), stamp >> COLUMN_BITS
                if row[column] < epoch or other[column] < epoch:
                    return False
                known = stamp
        return True

    cdef bint _timed_is_known(
        self, int place, const int64_t[::1] first, Py_ssize_t each, const int32_t* row, const int32_t* other,
        int64_t slot, int64_t started, Py_ssize_t threads
    ) noexcept nogil:
        cdef const int64_t* stamps = &self._values[place, 0]
        cdef const int64_t* moments = &self._moments[place, 0]
        cdef Py_ssize_t i, unit
        cdef int64_t stamp, moment, known = UNUSED, known_at = 0
        for i in range(first.shape[0]):
            for unit in range(first[i], first[i] + each):
                stamp, moment = stamps[unit], moments[unit]
                if stamp == UNUSED or (stamp == known and moment == known_at):
                    continue
                if not is_known(row, stamp, moment, slot, started, threads, False):
                    return False
                if other is not NULL and not is_known(other, stamp, moment, slot, started, threads, True):
                    return False
                known, known_at = stamp, moment
        return True

    cdef void _fill(
        self, int place, Py_ssize_t start, Py_ssize_t stop, int64_t stamp, int note, int64_t moment
    ) noexcept nogil:
        cdef Py_ssize_t unit
        cdef int32_t* notes = &self._notes[place, 0]
        fill(&self._values[place, 0], start, stop, stamp)
        for unit in range(start, stop):
            notes[unit] = note
        if self._timed:
            fill(&self._moments[place, 0], start, stop, moment)

    def put(
        self, const int64_t[::1] places, const int64_t[::1] first, Py_ssize_t each, const int64_t[::1] stamps, int note
    ):
        """Write stamps to cells that are not timed, with a place and a stamp for each access or for all accesses."""
        cdef Py_ssize_t i, unit, place = places[0]
        cdef int64_t stamp = stamps[0]
        with nogil:
            for i in range(first.shape[0]):
                place = places[i] if places.shape[0] > 1 else place
                stamp = stamps[i] if stamps.shape[0] > 1 else stamp
                self.used |= 1 << place
                for unit in range(first[i], first[i] + each):
                    self._values[place, unit] = stamp
                    self._notes[place, unit] = note

    def clear(self, int places, const int64_t[::1] first, Py_ssize_t each):
        """Remove the accesses to some units in the places whose bits are set."""
        cdef Units units = units_of(first, each)
        self._clear(places, &units)

    cdef void _clear(self, int places, const Units* units) noexcept nogil:
        cdef int place
        cdef Py_ssize_t i, first
        for place in range(self._last + 1):
            for i in range(units.count if places >> place & 1 else 0):
                first = first_of(units, i)
                fill(&self._values[place, 0], first, first + units.each, UNUSED)


cdef inline bint is_known(
    const int32_t* row, int64_t stamp, int64_t moment, int64_t slot, int64_t started, Py_ssize_t threads,
    bint only_operations
) noexcept nogil:
    """Return whether a row of a clock contains a stamp with a moment; `slot` is the slot of the present cluster."""
    cdef int64_t whose = moment & ((1 << SLOT_BITS) - 1), time = moment >> SLOT_BITS
    cdef int64_t column = stamp & ((1 << COLUMN_BITS) - 1)
    if row[threads + whose] >= time:
        return True
    if whose != slot or time < started or (only_operations and column < threads):
        return False
    return row[column] >= stamp >> COLUMN_BITS


cdef inline void fill(int64_t* values, Py_ssize_t start, Py_ssize_t stop, int64_t value) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(start, stop):
        values[i] = value
