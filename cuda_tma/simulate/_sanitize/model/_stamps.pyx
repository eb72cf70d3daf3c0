# cython: boundscheck=False, wraparound=False, cdivision=True
"""The stamps of a shadow: each access looks at every unit that it touches, of which a wgmma has thousands."""

from libc.stdint cimport int32_t, int64_t

import numpy as np

cdef enum:
    COLUMN_BITS = 20  # of a stamp; above them is the epoch
    SLOT_BITS = 16  # of what tells where and when; above them is the time
    NOBODY = 0
    WARP = 32
    ORDERED = 0  # rows of a clock
    FENCED = 1


cdef class Stamps:
    """Who touched each unit, in so many places for each.

    Attributes
    ----------
    values, notes : numpy.ndarray, [place, unit]
        The stamps; and of each, the site twice, and whether the access was strong.
    """

    cdef readonly object values
    cdef readonly object notes
    cdef int64_t[:, ::1] _values
    cdef int32_t[:, ::1] _notes

    def __init__(self, values, notes):
        self.values = self._values = values
        self.notes = self._notes = notes

    def late(
        self, int places, const int64_t[::1] first, Py_ssize_t each,
        const int32_t[:, :] lanes, const int32_t[:, :] warps, const int64_t[::1] who, bint strong
    ):
        """In which places there is a stamp that is not known to who touches its unit now.

        Parameters
        ----------
        places : int
            A bit for each place that is looked at; so is the result.
        first : numpy.ndarray of int64
            Of each access the first unit, of `each`.
        lanes, warps : numpy.ndarray of int32, [lane, column], [warp, column]
            What is known, see `Known`.
        who : numpy.ndarray of int64
            The lane of each access; one, if all are of the same.
        strong : bool
            Whether what is strong itself does not count.
        """
        cdef int place, found = 0
        with nogil:
            for place in range(<int>self._values.shape[0]):
                if places >> place & 1 and self._is_late(place, first, each, lanes, warps, who, strong):
                    found |= 1 << place
        return found

    cdef bint _is_late(
        self, int place, const int64_t[::1] first, Py_ssize_t each,
        const int32_t[:, :] lanes, const int32_t[:, :] warps, const int64_t[::1] who, bint strong
    ) noexcept nogil:
        cdef const int64_t* stamps = &self._values[place, 0]
        cdef Py_ssize_t i, unit
        cdef int64_t stamp, epoch, column, known = NOBODY, lane = who[0]
        for i in range(first.shape[0]):
            if who.shape[0] > 1:
                lane, known = who[i], NOBODY
            for unit in range(first[i], first[i] + each):
                stamp = stamps[unit]
                if stamp == known or stamp == NOBODY or (strong and self._notes[place, unit] & 1):
                    continue
                column, epoch = stamp & ((1 << COLUMN_BITS) - 1), stamp >> COLUMN_BITS
                if lanes[lane, column] < epoch and warps[lane // WARP, column] < epoch:
                    return True
                known = stamp
        return False

    def operate(
        self, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, ::1] clock, int row, int other_row,
        bint strong, int place, int readers, int64_t stamp, int note
    ):
        """What an operation does to units, if it knows who touched them before; else nothing.

        Parameters
        ----------
        first : numpy.ndarray of int64
            Of each access the first unit, of `each`.
        clock : numpy.ndarray of int32, [row, column]
            What precedes it. An access before counts as known if it is in `row` and in `other_row`.
        place : int
            Where it is remembered. In the last place it is a write: what the places of `readers` hold is looked at,
            too, and no longer counts.

        Returns
        -------
        bool
            Whether it knows them all, and reads nothing that nobody has written.
        """
        cdef int at, last = <int>self._values.shape[0] - 1
        cdef Py_ssize_t i
        cdef int looked = 1 << last | (readers if place == last else 0)
        cdef bint known = True
        with nogil:
            for at in range(last + 1):
                if looked >> at & 1:
                    known = known and self._is_known(
                        at, first, each, &clock[row, 0], &clock[other_row, 0], strong, at == last > place
                    )
            if known:
                for i in range(first.shape[0]):
                    self._fill(place, first[i], first[i] + each, stamp, note)
                    for at in range(last if place == last else 0):
                        if readers >> at & 1:
                            fill(&self._values[at, 0], first[i], first[i] + each, NOBODY)
        return known

    cdef bint _is_known(
        self, int place, const int64_t[::1] first, Py_ssize_t each,
        const int32_t* row, const int32_t* other, bint strong, bint reads
    ) noexcept nogil:
        cdef const int64_t* stamps = &self._values[place, 0]
        cdef Py_ssize_t i, unit
        cdef int64_t stamp, epoch, column, known = NOBODY
        for i in range(first.shape[0]):
            for unit in range(first[i], first[i] + each):
                stamp = stamps[unit]
                if stamp == NOBODY and reads:
                    return False
                if stamp == known or stamp == NOBODY or (strong and self._notes[place, unit] & 1):
                    continue
                column, epoch = stamp & ((1 << COLUMN_BITS) - 1), stamp >> COLUMN_BITS
                if row[column] < epoch or other[column] < epoch:
                    return False
                known = stamp
        return True

    cdef void _fill(self, int place, Py_ssize_t start, Py_ssize_t stop, int64_t stamp, int note) noexcept nogil:
        cdef Py_ssize_t unit
        cdef int32_t* notes = &self._notes[place, 0]
        fill(&self._values[place, 0], start, stop, stamp)
        for unit in range(start, stop):
            notes[unit] = note

    def touch(
        self, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, :] lanes, const int32_t[:, :] warps,
        const int32_t[:, :] own, Py_ssize_t threads, const int64_t[::1] who, bint strong, bint writes, bint reads,
        int readers, int note
    ):
        """Put the accesses of threads, if each follows the accesses before it; else change nothing.

        Parameters
        ----------
        first, each, lanes, warps, who, strong
            As of `late`.
        own : numpy.ndarray of int32, [lane, column]
            Contains the epoch of each lane in its own column, of `threads`.
        writes : bool
            Whether these are writes: they follow the reads in the places of `readers`, too, which then are empty.
        reads : bool
            Whether units that no thread has written prevent the accesses.

        Returns
        -------
        int
            A bit for each place with a new stamp, 0 if nothing has changed. The bit after the last place is set where
            two of the accesses write one unit.
        """
        cdef int place, last = <int>self._values.shape[0] - 1, found = 0
        cdef int looked = 1 << last | (readers if writes else 0)
        cdef bint is_late = False
        with nogil:
            for place in range(last + 1):
                if looked >> place & 1:
                    is_late = is_late or self._is_late(place, first, each, lanes, warps, who, strong)
            if not (is_late or (reads and self._has_empty(last, first, each))):
                found = self._put_own(first, each, own, threads, who, writes, note)
                if writes:
                    self._empty(readers, first, each)
        return found

    cdef int _put_own(
        self, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, :] own, Py_ssize_t threads,
        const int64_t[::1] who, bint writes, int note
    ) noexcept nogil:
        cdef int place, last = <int>self._values.shape[0] - 1, found = 0
        cdef Py_ssize_t i, unit
        cdef int64_t lane, stamp
        for i in range(first.shape[0]):
            lane = who[i]
            place = last if writes else <int>(lane // WARP % last)
            stamp = <int64_t>own[lane, lane % threads] << COLUMN_BITS | lane % threads
            self._fill(place, first[i], first[i] + each, stamp, note)
            found |= 1 << place
        for i in range(first.shape[0] if writes else 0):
            lane = who[i]
            stamp = <int64_t>own[lane, lane % threads] << COLUMN_BITS | lane % threads
            for unit in range(first[i], first[i] + each):
                if self._values[last, unit] != stamp:
                    found |= 1 << (last + 1)
        return found

    cdef bint _has_empty(self, int place, const int64_t[::1] first, Py_ssize_t each) noexcept nogil:
        cdef Py_ssize_t i, unit
        for i in range(first.shape[0]):
            for unit in range(first[i], first[i] + each):
                if self._values[place, unit] == NOBODY:
                    return True
        return False

    def put(
        self, const int64_t[::1] places, const int64_t[::1] first, Py_ssize_t each, const int64_t[::1] stamps, int note
    ):
        """Stamp units: of each access its own place and stamp, or one for all."""
        cdef Py_ssize_t i, unit, place = places[0]
        cdef int64_t stamp = stamps[0]
        with nogil:
            for i in range(first.shape[0]):
                place = places[i] if places.shape[0] > 1 else place
                stamp = stamps[i] if stamps.shape[0] > 1 else stamp
                for unit in range(first[i], first[i] + each):
                    self._values[place, unit] = stamp
                    self._notes[place, unit] = note

    def clear(self, int places, const int64_t[::1] first, Py_ssize_t each):
        """Nobody has touched units: in the places whose bits are set."""
        with nogil:
            self._empty(places, first, each)

    cdef void _empty(self, int places, const int64_t[::1] first, Py_ssize_t each) noexcept nogil:
        cdef int place
        cdef Py_ssize_t i
        for place in range(<int>self._values.shape[0]):
            if places >> place & 1:
                for i in range(first.shape[0]):
                    fill(&self._values[place, 0], first[i], first[i] + each, NOBODY)


cdef class TimedStamps:
    """As `Stamps`, where who touched a unit may be gone: with each stamp is the place of a cluster, and the time.

    Attributes
    ----------
    stamps, whens, sites : numpy.ndarray, [place, unit]
        In `whens` the time and the place of the cluster; in `sites` the site.
    """

    cdef readonly object stamps
    cdef readonly object whens
    cdef readonly object sites
    cdef int64_t[:, ::1] _stamps
    cdef int64_t[:, ::1] _whens
    cdef int32_t[:, ::1] _sites

    def __init__(self, Py_ssize_t places, Py_ssize_t units):
        self.stamps = np.zeros((places, units), np.int64)
        self.whens = np.zeros((places, units), np.int64)
        self.sites = np.zeros((places, units), np.int32)
        self._stamps, self._whens, self._sites = self.stamps, self.whens, self.sites

    def operate(
        self, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, ::1] clock, int visible, bint fenced,
        Py_ssize_t threads, int64_t started, int place, int64_t stamp, int64_t when, int site
    ):
        """As `Stamps.operate`, by the cluster of `when`; in the last place it is a write.

        Parameters
        ----------
        visible : int
            The row of `clock` for writes before; of reads it is the first.
        fenced : bool
            Whether a fence must be between, too.
        threads : int
            Columns of threads, before those of clusters' times.
        started : int
            When the cluster of `when` began.
        """
        cdef int at, last = <int>self._stamps.shape[0] - 1
        cdef Py_ssize_t i
        cdef bint known = True
        with nogil:
            for at in range(last if place < last else 0, last + 1):
                known = known and self._is_known(
                    at, first, each, &clock[visible if at == last else ORDERED, 0], &clock[FENCED, 0], fenced, threads,
                    when & ((1 << SLOT_BITS) - 1), started
                )
            if known:
                for i in range(first.shape[0]):
                    self._fill(place, first[i], first[i] + each, stamp, when, site)
                    for at in range(last if place == last else 0):
                        fill(&self._stamps[at, 0], first[i], first[i] + each, NOBODY)
        return known

    def touch(
        self, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, :, :] lanes, const int32_t[:, :, :] warps,
        int visible, Py_ssize_t threads, const int64_t[::1] started, const int64_t[::1] who, int64_t now, int place,
        int site
    ):
        """Put weak accesses of threads, if each follows the accesses before it; else change nothing.

        Parameters
        ----------
        lanes, warps : numpy.ndarray of int32, [row, lane, column], [row, warp, column]
            The clocks, see `Known`.
        visible, threads
            As of `operate`.
        started : numpy.ndarray of int64, [slot]
            The times at which the present clusters began.
        who : numpy.ndarray of int64
            The lane of each access.
        now : int
            The present time.
        place : int
            The place of these accesses. In the last place they are writes.

        Returns
        -------
        int
            0 if nothing has changed, 2 if two of the accesses write one unit, else 1.
        """
        cdef int at, last = <int>self._stamps.shape[0] - 1, found = 0
        cdef Py_ssize_t i
        cdef bint follow = True
        with nogil:
            for at in range(last if place < last else 0, last + 1):
                follow = follow and self._follow(
                    at, visible if at == last else ORDERED, first, each, lanes, warps, threads, started, who
                )
            if follow:
                found = self._put_own(place, first, each, lanes, threads, who, now, site)
                for i in range(first.shape[0] if place == last else 0):
                    for at in range(last):
                        fill(&self._stamps[at, 0], first[i], first[i] + each, NOBODY)
        return found

    cdef bint _follow(
        self, int place, int row, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, :, :] lanes,
        const int32_t[:, :, :] warps, Py_ssize_t threads, const int64_t[::1] started, const int64_t[::1] who
    ) noexcept nogil:
        cdef Py_ssize_t i, unit
        cdef int64_t stamp, when, epoch, column, whose, time, lane, warp
        for i in range(first.shape[0]):
            lane, warp = who[i], who[i] // WARP
            for unit in range(first[i], first[i] + each):
                stamp, when = self._stamps[place, unit], self._whens[place, unit]
                if stamp == NOBODY:
                    continue
                column, epoch = stamp & ((1 << COLUMN_BITS) - 1), stamp >> COLUMN_BITS
                whose, time = when & ((1 << SLOT_BITS) - 1), when >> SLOT_BITS
                if whose == lane // threads and time >= started[whose]:
                    if lanes[row, lane, column] >= epoch or warps[row, warp, column] >= epoch:
                        continue
                if lanes[row, lane, threads + whose] < time and warps[row, warp, threads + whose] < time:
                    return False
        return True

    cdef int _put_own(
        self, int place, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, :, :] lanes, Py_ssize_t threads,
        const int64_t[::1] who, int64_t now, int site
    ) noexcept nogil:
        cdef int found = 1
        cdef Py_ssize_t i, unit
        cdef int64_t lane, column, stamp, when
        for i in range(first.shape[0]):
            lane, column = who[i], who[i] % threads
            when = now << SLOT_BITS | lane // threads
            for unit in range(first[i], first[i] + each):
                if self._whens[place, unit] >> SLOT_BITS == now and self._stamps[place, unit] != NOBODY:
                    found = 2
            stamp = <int64_t>lanes[ORDERED, lane, column] << COLUMN_BITS | column
            self._fill(place, first[i], first[i] + each, stamp, when, site)
        return found

    cdef bint _is_known(
        self, int place, const int64_t[::1] first, Py_ssize_t each, const int32_t* row, const int32_t* behind_fence,
        bint fenced, Py_ssize_t threads, int64_t slot, int64_t started
    ) noexcept nogil:
        cdef Py_ssize_t i, unit
        cdef int64_t stamp, when, epoch, column, whose, time, stamp_before = NOBODY, when_before = 0
        cdef bint here, known
        for i in range(first.shape[0]):
            for unit in range(first[i], first[i] + each):
                stamp, when = self._stamps[place, unit], self._whens[place, unit]
                if stamp == NOBODY or (stamp == stamp_before and when == when_before):
                    continue
                column, epoch = stamp & ((1 << COLUMN_BITS) - 1), stamp >> COLUMN_BITS
                whose, time = when & ((1 << SLOT_BITS) - 1), when >> SLOT_BITS
                here = whose == slot and time >= started
                known = (here and row[column] >= epoch) or row[threads + whose] >= time
                if fenced and known:
                    here = here and column >= threads
                    known = (here and behind_fence[column] >= epoch) or behind_fence[threads + whose] >= time
                if not known:
                    return False
                stamp_before, when_before = stamp, when
        return True

    cdef void _fill(
        self, int place, Py_ssize_t start, Py_ssize_t stop, int64_t stamp, int64_t when, int site
    ) noexcept nogil:
        cdef Py_ssize_t unit
        cdef int32_t* sites = &self._sites[place, 0]
        fill(&self._stamps[place, 0], start, stop, stamp)
        fill(&self._whens[place, 0], start, stop, when)
        for unit in range(start, stop):
            sites[unit] = site


cdef inline void fill(int64_t* values, Py_ssize_t start, Py_ssize_t stop, int64_t value) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(start, stop):
        values[i] = value
