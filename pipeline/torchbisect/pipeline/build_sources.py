"""The builds of this machine's channels (releases, nightlies, commits), and how an environment of each is made.

The modules for lists of builds and for containers are imported where they are needed: pypi-simple and docker take half
of the time until a command that needs neither begins.
"""

from __future__ import annotations

import datetime
import functools
import re
import sys
from dataclasses import dataclass, replace

from torchbisect.bisect.sources import nightly, release
from torchbisect.bisect.sources.listing import Listing
from torchbisect.bisect.sources.nightly import UrlProbe
from torchbisect.bisect.sources.selection import BuildSelector
from torchbisect.bisect.sources.variant_pairs import PythonVariant
from torchbisect.containers.environment import Environments
from torchbisect.containers.index import cpu_index
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.python.variants import choose_variant, find_gpus
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import IndexUnreachable, InputError
from torchbisect.core.retry import DEFAULT_RETRY, RetryPolicy
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.variant_ranges import NightlyFinder, NightlySource

#: Retries of an index that the user did not ask for by name.
_HASTY = RetryPolicy(first_wait=0.5, longest_wait=1.0, total=2.0)
_VARIANT = re.compile(r"cpu|xpu|cu\d+|rocm[\d.]+")


@dataclass(frozen=True)
class LocalBuildSources:
    """Lists builds from indexes, and makes environments on this machine. See ``provider.BuildSources``."""

    options: Options
    display: Display

    @functools.cached_property
    def interpreter(self) -> Interpreter:
        """The Python that environments are made with; in containers, that of the image.

        Raises ``InputError`` if ``--python`` names no Python, ``MachineError`` if no container engine answers.
        """
        in_container = self.options.sandbox == "docker"
        return self._release_maker.interpreter if in_container else Interpreter.of(self.options.python)

    @functools.cached_property
    def cache(self) -> Cache:
        """The folder in which environments are kept."""
        return Cache(self.options.cache_dir, limit=self.options.cache_limit)

    @functools.cached_property
    def indexes(self) -> Indexes:
        """The indexes of the releases, and of the packages that builds need besides torch."""
        url = None if self._index_is_nightly else self.options.index_url
        found = Indexes.from_configuration(url, self.options.extra_index_urls, python=self._host_python)
        return replace(found, allow_sdists=self.options.allow_sdists)

    @property
    def _host_python(self) -> str:
        """The Python whose pip configuration counts; a container has none."""
        return sys.executable if self.options.sandbox == "docker" else str(self.interpreter.path)

    @functools.cached_property
    def releases(self) -> Listing:
        """The releases that the index offers to this Python, oldest first; those without torch.compile are measured."""
        from torchbisect.containers.index.pages import packages

        found, options = packages(self._release_indexes, "torch", notify=self.display.warn), self.options
        return release.releases(
            found, self.interpreter, options.variant, cpu_first=self._cpu_first, compiles=options.measure is None
        )

    @functools.cached_property
    def _cpu_first(self) -> bool:
        """True if wheels for the CPU are taken where an index has them: there is no GPU, and no variant was named."""
        options = self.options
        typed = [text.rpartition("+")[2] for text in (options.torch, options.good, options.bad) if text and "+" in text]
        named = options.variant or options.device == "cuda" or any(map(_VARIANT.fullmatch, typed))
        return not named and options.sandbox == "venv" and not find_gpus()

    @functools.cached_property
    def _release_indexes(self) -> Indexes:
        """The indexes, with PyTorch's own for the CPU where no other main index is configured and it answers."""
        own = self.indexes
        on_linux = any("linux" in platform for platform in self.interpreter.platforms)
        if self._cpu_first and on_linux and own.main_is_public and cpu_index.answers():
            return replace(own, extra_index_urls=(cpu_index.CPU_INDEX, *own.extra_index_urls))
        return own

    @functools.cached_property
    def _release_maker(self) -> Environments:
        return self._maker(self._release_indexes if self.options.sandbox == "venv" else self.indexes)

    @functools.cached_property
    def _installed_maker(self) -> Environments:
        """The maker for the installed torch, which needs no index."""
        return self._maker(self.indexes)

    @functools.cached_property
    def variant(self) -> str:
        """The variant named by the user, else by the nightly index, else the one for the GPU's driver, else ``cpu``."""
        tail = (self.options.index_url or "").rstrip("/").rpartition("/")[2]
        if self._index_is_nightly and _VARIANT.fullmatch(tail):
            return self.options.variant or tail
        gpus = find_gpus() if self.options.device == "cuda" and self.options.variant is None else []
        return self.options.variant or choose_variant(nightly.CUDA_VARIANTS, gpus)

    @property
    def nightly_index(self) -> str:
        """The index of all variants: PyTorch's own, unless ``--channel nightly`` came with ``--index-url``."""
        if not self._index_is_nightly or self.options.index_url is None:
            return nightly.NIGHTLY_INDEX
        head, _, tail = self.options.index_url.rstrip("/").rpartition("/")
        return head if _VARIANT.fullmatch(tail) else self.options.index_url

    @property
    def _index_is_nightly(self) -> bool:
        """True if ``--index-url`` is the index of nightlies, because only these are asked for."""
        return self.options.channels != () and "release" not in self.options.channels

    @functools.cached_property
    def nightly_indexes(self) -> Indexes:
        """The nightly index, followed by the indexes of the packages that nightlies need besides torch."""
        return self._nightly_indexes_of(self.variant)

    def _nightly_indexes_of(self, variant: str) -> Indexes:
        own = self.indexes
        return Indexes(nightly.index_url(variant, self.nightly_index), own.urls, own.find_links, own.allow_sdists)

    @functools.cached_property
    def listed_nightlies(self) -> Listing:
        """The nightlies on the index's page, by date."""
        from torchbisect.containers.index.pages import project_page

        asked_for = "nightly" in self.options.channels
        page = project_page(
            nightly.index_url(self.variant, self.nightly_index),
            "torch",
            notify=self.display.warn if asked_for else self.display.detail,
            retry=DEFAULT_RETRY if asked_for else _HASTY,
        )
        if page is None:
            raise IndexUnreachable(
                f"{nightly.index_url(self.variant, self.nightly_index)} has no page of torch: name another --variant"
            )
        return nightly.nightlies(page.packages, self.interpreter, self.variant)

    def nightlies_between(self, first: datetime.date, last: datetime.date) -> Listing:
        """Return the nightlies of these days, both included; those that no page lists are looked for one by one."""
        listing, elsewhere = self._nightly_finder.find(first, last, self.listed_nightlies)
        self._elsewhere.update(elsewhere)
        return listing

    def nightly(self, selector: BuildSelector) -> Build:
        """Return the nightly that the user named."""
        listed = selector.best_of(self.listed_nightlies.builds)
        if listed is not None:
            return listed
        date = selector.date
        found = self.nightlies_between(date, date).builds if date is not None else ()
        if not found:
            raise InputError(
                f"there is no nightly {selector.text} ({self.variant}) for this Python: see torchbisect builds"
            )
        return found[-1]

    @functools.cached_property
    def _nightly_finder(self) -> NightlyFinder:
        own = NightlySource(self.interpreter, self.variant)
        chosen = self.options.python != sys.executable or self.options.sandbox == "docker"
        return NightlyFinder(own, self.nightly_index, self._url_probe.exists, self.display.detail, others=not chosen)

    @functools.cached_property
    def _elsewhere(self) -> dict[str, NightlySource]:
        """The nightlies of another Python or variant, by their wheels' addresses."""
        return {}

    @functools.cached_property
    def _makers_elsewhere(self) -> dict[PythonVariant, Environments]:
        return {}

    @functools.cached_property
    def _url_probe(self) -> UrlProbe:
        return UrlProbe(notify=self.display.detail)

    @functools.cached_property
    def _nightly_maker(self) -> Environments:
        return self._maker(self.nightly_indexes)

    def maker(self, build: Build) -> Environments:
        """Return the maker of environments of builds like this one."""
        source = self._elsewhere.get(build.wheel or "")
        if source is not None:
            made = self._makers_elsewhere
            if source.pair not in made:
                made[source.pair] = self._maker(self._nightly_indexes_of(source.variant), source.interpreter)
            return made[source.pair]
        if build.channel is Channel.INSTALLED and self.options.sandbox == "venv":
            return self._installed_maker
        return self._nightly_maker if build.channel is Channel.NIGHTLY else self._release_maker

    def _maker(self, indexes: Indexes, interpreter: Interpreter | None = None) -> Environments:
        if self.options.sandbox == "docker":
            return self._docker_maker(indexes)
        return VenvEnvironments(
            self.cache,
            interpreter or self.interpreter,
            indexes,
            packages=self.options.packages,
            notify=self.display.status,
            announce=self.display.result,
        )

    def _docker_maker(self, indexes: Indexes) -> Environments:
        from torchbisect.containers.docker.container_processes import Confinement
        from torchbisect.containers.docker.environments import DockerEnvironments
        from torchbisect.containers.docker.images import ImageOptions

        options, cuda = self.options, self.options.device == "cuda"
        return DockerEnvironments(
            self.cache,
            indexes,
            image=ImageOptions(options.image, "cuda" if cuda else "cpu"),
            packages=options.packages,
            confinement=Confinement(gpu="0" if cuda else None, runtime=options.runtime),
            notify=self.display.status,
        )

    def close(self) -> None:
        """Release all environments and connections."""
        for name in ("_url_probe", "_installed_maker", "_release_maker", "_nightly_maker"):
            if name in self.__dict__:
                self.__dict__[name].close()
        for maker in self._makers_elsewhere.values():
            maker.close()
