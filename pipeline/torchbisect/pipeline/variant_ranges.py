"""Search nightlies whose ends have no common variant (cpu, cu126, ...): split the range and join its parts."""

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
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.python.variants import cuda_version, find_gpus, incompatibility
from torchbisect.core.build import Build
from torchbisect.core.errors import TorchbisectError
from torchbisect.core.retry import Notify

#: Other Pythons to look for on this machine, in the order of preference.
_PYTHONS = ("3.12", "3.11", "3.10", "3.13", "3.14")


@dataclass(frozen=True)
class NightlySource:
    """A Python and a variant, of which an index has nightlies."""

    interpreter: Interpreter
    variant: str

    @property
    def pair(self) -> PythonVariant:
        """The tag of the Python, and the variant."""
        return PythonVariant(self.interpreter.abi, self.variant)


@dataclass(frozen=True)
class NightlyFinder:
    """Finds the nightlies of a range of days.

    Attributes:
        own: the Python and variant of the run.
        index: the index of all variants.
        exists: returns true if there is a file at an address.
        notify: called before each wait for the index.
        others: other Pythons of this machine may be used; false if the user named one.
    """

    own: NightlySource
    index: str
    exists: Callable[[str], bool]
    notify: Notify
    others: bool = True

    def find(
        self, first: datetime.date, last: datetime.date, listed: Listing
    ) -> tuple[Listing, dict[str, NightlySource]]:
        """Find the nightlies of a range, both days included, and the other sources by the address of a wheel.

        The nightlies come by date, with a notice if the range was split. A day where two parts join has one of each.
        Raises ``IndexUnreachable`` if the index did not answer.
        """
        own = self._nightlies(self.own, first, last, listed)
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
        parts = [(part.pair, self._part(part, found[part.pair])) for part in split.parts]
        elsewhere = {
            build.wheel: sources[pair]
            for pair, listing in parts
            for build in listing.builds
            if pair != self.own.pair and build.wheel
        }
        builds = tuple(build for _, listing in parts for build in listing.builds)
        wheels = {version: wheel for _, listing in reversed(parts) for version, wheel in listing.wheels.items()}
        return Listing(builds, own.left_out, wheels, split.notice), elsewhere

    def _part(self, part: RangePart, listing: Listing) -> Listing:
        """Return the nightlies of a part; those of another source by address, as two sources may share a version."""

        def identified(build: Build) -> Build:
            address = build.wheel or listing.wheels[build.version].url
            return build if part.pair == self.own.pair else replace(build, wheel=address)

        inside = [build for build in listing.builds if build.date and part.first <= build.date <= part.last]
        return replace(listing, builds=tuple(identified(build) for build in inside))

    def _alternatives(self) -> Iterator[NightlySource]:
        """Yield other CUDA variants for this Python, then other Pythons on this machine."""
        yield from (NightlySource(self.own.interpreter, variant) for variant in self._variants)
        for interpreter in self._interpreters if self.others else ():
            yield from (NightlySource(interpreter, variant) for variant in (self.own.variant, *self._variants))

    @functools.cached_property
    def _variants(self) -> tuple[str, ...]:
        """The other CUDA variants that the GPU here can run; none for a run without CUDA."""
        if cuda_version(self.own.variant) is None:
            return ()
        gpus = find_gpus()
        others = (one for one in nightly.CUDA_VARIANTS_EVER if one != self.own.variant)
        return tuple(one for one in others if not (gpus and incompatibility(one, gpus[0])))

    @functools.cached_property
    def _interpreters(self) -> tuple[Interpreter, ...]:
        found = []
        for version in _PYTHONS:
            path = shutil.which(f"python{version}")
            if path and re.fullmatch(rf"{version}\..*", self.own.interpreter.version) is None:
                try:
                    found.append(Interpreter.of(path))
                except TorchbisectError:  # a Python that does not start is no alternative
                    continue
        return tuple(found)

    def _in_gaps(self, source: NightlySource, gaps: list[tuple[datetime.date, datetime.date]]) -> Listing:
        # Imported late, as in build_sources.
        from torchbisect.containers.index.pages import project_page

        page = project_page(nightly.index_url(source.variant, self.index), "torch", notify=self.notify)
        listed = nightly.nightlies(page.packages if page else [], source.interpreter, source.variant)
        parts = []
        for first, last in gaps:
            # Each day that no page lists costs several requests, so a source that has neither end is not asked.
            ends = [self._nightlies(source, day, day, listed).builds for day in (first, last)]
            if any(ends):
                parts.append(self._nightlies(source, first, last, listed))
        builds = sorted({build for part in parts for build in part.builds}, key=lambda build: build.date or last)
        return Listing(tuple(builds), (), listed.wheels)

    def _nightlies(self, source: NightlySource, first: datetime.date, last: datetime.date, listed: Listing) -> Listing:
        found = nightly.nightlies_of_days(
            first, last, listed.builds, self.exists, source.interpreter, source.variant, self.index
        )
        return replace(found, wheels=listed.wheels)


def _gaps(own: Listing, first: datetime.date, last: datetime.date) -> Iterator[tuple[datetime.date, datetime.date]]:
    """Yield the days at both ends that a listing lacks; a few days within the table's tolerance are no gap."""
    days = [build.date for build in own.builds if build.date is not None]
    if not days:
        yield first, last
        return
    if days[0] - first > TABLE_TOLERANCE:
        yield first, days[0]
    if last - days[-1] > TABLE_TOLERANCE:
        yield days[-1], last
