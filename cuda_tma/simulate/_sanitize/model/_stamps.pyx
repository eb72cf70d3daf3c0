# cython: boundscheck=False, wraparound=False, cdivision=True
"""The stamps of a shadow: each access looks at every unit that it touches, of which a wgmma has thousands."""

from libc.stdint cimport int32_t, int64_t

from ._bits cimport COLUMN_BITS, NOBODY, ORDERED, WARP, fill


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
        self, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, :, :] lanes, const int32_t[:, :, :] warps,
        int visible, Py_ssize_t threads, const int64_t[::1] who, bint strong, bint writes, bint reads, int readers,
        int note
    ):
        """Put the accesses of threads, if each follows the accesses before it; else change nothing.

        Parameters
        ----------
        first, each, who, strong
            As of `late`.
        lanes, warps : numpy.ndarray of int32, [row, lane, column], [row, warp, column]
            The clocks, see `Known`; a lane's own column, of `threads`, contains its epoch.
        visible : int
            The row of `lanes` and `warps` with the accesses before these.
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
                    is_late = is_late or self._is_late(
                        place, first, each, lanes[visible], warps[visible], who, strong
                    )
            if not (is_late or (reads and self._has_empty(last, first, each))):
                found = self._put_own(first, each, lanes[ORDERED], threads, who, writes, note)
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
