"""Nightlies of a range that one Python and variant don't reach across: the parts it is split into, joined again."""

from __future__ import annotations

import datetime
import functools
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from torchbisect.bisect.sources import nightly
from torchbisect.bisect.sources.branch_cuts import TABLE_TOLERANCE
from torchbisect.bisect.sources.listing import Listing
from torchbisect.bisect.sources.variant_pairs import PythonVariant, RangePart, split_range
from torchbisect.containers.index.pages import project_page
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.python.variants import cuda_version, find_gpus, incompatibility
from torchbisect.core.errors import TorchbisectError
from torchbisect.core.retry import Notify

_PYTHONS = ("3.12", "3.11", "3.10", "3.13", "3.14")


@dataclass(frozen=True)
class Source:
    """A Python and a variant: where a part of a range comes from."""

    interpreter: Interpreter
    variant: str

    @property
    def pair(self) -> PythonVariant:
        """What names it."""
        return PythonVariant(self.interpreter.abi, self.variant)


@dataclass(frozen=True)
class NightlyFinder:
    """Finds the nightlies of a range.

    Attributes:
        own: the Python and variant that the run is made with.
        index: the index of all variants.
        exists: whether there is a file at an address.
        notify: told of each wait.
        others: whether other Pythons on this machine may be taken: not if one was named.
    """

    own: Source
    index: str
    exists: Callable[[str], bool]
    notify: Notify
    others: bool = True

    def between(self, first: datetime.date, last: datetime.date, listed: Listing) -> tuple[Listing, dict[str, Source]]:
        """The nightlies of these days, both included, and where those come from that are of another source.

        Args:
            first: the first day.
            last: the last day.
            listed: what the index lists for the run's own Python and variant.

        Returns:
            The nightlies by date, with a notice if the range had to be split; on a day where two parts join there is
            one of each. The sources go by the address of a nightly's wheel.

        Raises:
            IndexUnreachable: the index did not answer.
        """
        own = self._days(self.own, first, last, listed)
        gaps = list(_gaps(own, first, last))
        if not gaps:
            return own, {}
        found = {self.own.pair: own}
        sources = {self.own.pair: self.own}
        for source in self._alternatives():
            listing = self._in_gaps(source, gaps)
            if listing.builds:
                found[source.pair], sources[source.pair] = listing, source
        days = {pair: [build.date for build in one.builds if build.date] for pair, one in found.items()}
        split = split_range(first, last, days, list(found))
        parts = [self._part(segment, found[segment.pair]) for segment in split.parts]
        builds = tuple(build for part in parts for build in part.builds)
        elsewhere = {
            build.wheel: sources[segment.pair]
            for segment, part in zip(split.parts, parts)
            for build in part.builds
            if segment.pair != self.own.pair and build.wheel
        }
        wheels = {version: wheel for part in reversed(parts) for version, wheel in part.wheels.items()}
        return Listing(builds, own.left_out, wheels, split.notice), elsewhere

    def _part(self, segment: RangePart, listing: Listing) -> Listing:
        """A segment's nightlies; those of another source by their address, as two sources may share a version."""
        builds = []
        for build in listing.builds:
            if build.date is None or not segment.first <= build.date <= segment.last:
                continue
            address = build.wheel or listing.wheels[build.version].url
            builds.append(build if segment.pair == self.own.pair else replace(build, wheel=address))
        return replace(listing, builds=tuple(builds))

    def _alternatives(self) -> Iterator[Source]:
        """Other variants of this kind for this Python, then other Pythons on this machine."""
        yield from (Source(self.own.interpreter, variant) for variant in self._variants)
        for interpreter in self._interpreters if self.others else ():
            yield from (Source(interpreter, variant) for variant in (self.own.variant, *self._variants))

    @functools.cached_property
    def _variants(self) -> tuple[str, ...]:
        if cuda_version(self.own.variant) is None:
            return ()
        gpus = find_gpus()
        others = (one for one in nightly.CUDA_VARIANTS_EVER if one != self.own.variant)
        return tuple(one for one in others if not (gpus and incompatibility(one, gpus[0])))

    @functools.cached_property
    def _interpreters(self) -> tuple[Interpreter, ...]:
        found = []
        for version in _PYTHONS:
            place = shutil.which(f"python{version}")
            if place and re.fullmatch(rf"{version}\..*", self.own.interpreter.version) is None:
                try:
                    found.append(Interpreter.of(place))
                except TorchbisectError:  # one that doesn't start can't help
                    continue
        return tuple(found)

    def _in_gaps(self, source: Source, gaps: list[tuple[datetime.date, datetime.date]]) -> Listing:
        page = project_page(nightly.index_url(source.variant, self.index), "torch", notify=self.notify)
        listed = nightly.nightlies(page.packages if page else [], source.interpreter, source.variant)
        parts = []
        for first, last in gaps:
            # Each day that no page lists costs several requests: a source that has neither end is not asked for them.
            ends = [self._days(source, day, day, listed).builds for day in (first, last)]
            if any(ends):
                parts.append(self._days(source, first, last, listed))
        builds = sorted({build for part in parts for build in part.builds}, key=lambda build: build.date or last)
        return Listing(tuple(builds), (), listed.wheels)

    def _days(self, source: Source, first: datetime.date, last: datetime.date, listed: Listing) -> Listing:
        found = nightly.nightlies_of_days(
            first, last, listed.builds, self.exists, source.interpreter, source.variant, self.index
        )
        return replace(found, wheels=listed.wheels)


def _gaps(own: Listing, first: datetime.date, last: datetime.date) -> Iterator[tuple[datetime.date, datetime.date]]:
    """The days at both ends that a listing doesn't reach, up to and with its own first or last day.

    A range begins and ends with days allowed for the tables' being off; so a few missing ones are no gap.
    """
    days = [build.date for build in own.builds if build.date is not None]
    if not days:
        yield first, last
        return
    if days[0] - first > TABLE_TOLERANCE:
        yield first, days[0]
    if last - days[-1] > TABLE_TOLERANCE:
        yield days[-1], last
