"""Read the torch that an issue states, in the forms of ``collect_env``, of installers, of wheels and of people.

Every form is written as ``--torch`` takes it: ``2.8.0+cu128``, ``2.7``, ``2.10.0.dev20251012+cu128``,
``2.4.0a0+git1a2b``, ``2025-02-15`` for a nightly by its day, ``nightly`` without one, and ``main@1a2b3c4``.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torchbisect.triage.issues.body_sections import lines_of, outside_fences
from torchbisect.triage.issues.statements import Clause, clauses

# What repeats in these patterns is bounded, so none of them can take longer than the text is long.
_V = (
    r"v?(?P<version>\d\.\d{1,2}(?:\.\d{1,2})?(?:[.-]?dev\d{0,8}|[.-]?(?:a|b|rc)\.?\d{1,3})?"
    r"(?:\+[A-Za-z0-9][A-Za-z0-9_.]{0,60})?)(?![\w]|\.\d)"
)
#: The output of collect_env, at the beginning of a line whatever decorates it.
_COLLECTED = re.compile(rf"[^\w\n]{{0,12}}(?:py)?torch[ _]version\W{{1,12}}(?:torch\s?==\s?)?{_V}", re.IGNORECASE)
#: What pip and conda list, requirements, wheels, and what ``torch.__version__`` prints.
_INSTALLED = re.compile(
    rf"(?<![\w.+-])(?:torch|pytorch)(?:\s?==\s?|\s?===\s?|\s{{2,40}}|-(?=\d\.\d{{1,2}}\.\d))[\"'`]?{_V}|"
    rf"torch\.__version__[\s`'\"=:|>#*()]{{0,12}}(?:is\s{{1,3}})?['\"`]?{_V.replace('version', 'version2')}",
    re.IGNORECASE,
)
#: A version that only torch has, alone on its line.
_ALONE = re.compile(rf"[\s`'\"#>*]{{0,8}}{_V}[\s`'\"*.]{{0,8}}$", re.IGNORECASE)
_LINK_WORDS = (
    r"(?:version|versions|release|releases|nightly|nightlies|build|builds|stable|latest|is|was|of|dev|in|on|with|using|"
    r"installed|used|tested|both|the|wheel|wheels|branch|cpu|cuda|gpu|source|python|rc)"
)
#: The same where only versions stand.
_LINE = re.compile(rf"[\s`'\"#>*-]{{0,8}}(?:versions?[\s:*=]{{1,4}})?{_V}[\s`'\"*.,]{{0,8}}$", re.IGNORECASE)
#: A list of versions that begins a line, where only versions stand: ``2.5.1, 2.6.0 (both)``.
_LINE_OF_SEVERAL = re.compile(
    rf"[\s`'\"#>*-]{{0,8}}(?:versions?[\s:*=]{{1,4}})?{_V}(?=[\s`'\"*]{{0,3}}[,;(/&]|\s(?:and|or)\s)", re.I
)
_SEPARATORS = r"[\s`'\"=:|*()\[\]@~>,_–—-]{1,20}"
_NAMED = re.compile(
    rf"(?<![\w.+/-])(?:py)?torch(?:(?=\d\.)|(?![\w-])(?!\.[a-z]){_SEPARATORS}(?:{_LINK_WORDS}{_SEPARATORS}){{0,4}}){_V}",
    re.IGNORECASE,
)
#: A further version after one of torch: ``2.5.1, 2.6.0 and nightly``.
_FURTHER = re.compile(
    rf"[\s`'\"*)]{{0,4}}(?:,|/|&|and|or|to|through|->|→|vs\.?)[\s`'\"*(]{{0,4}}(?:the\s)?"
    rf"(?:{_V}|(?P<nightly>nightly|main)\b)",
    re.IGNORECASE,
)
#: A version that nothing names: a preposition or the beginning of a clause before it, and a judgment in its clause.
_BARE = re.compile(rf"(?:^|(?<=[\s`'\"(|*>=<]))(?<![\w.+-]){_V}", re.IGNORECASE)
_BEFORE_BARE = """
in on with from to since version v release and until after before at nightly torch pytorch using versions upgrading by
for both or than vs between of release: version: >= <= > < = == | (
"""
_DIGIT = re.compile(r"\d")
#: Packages whose versions look like those of torch.
_SIBLINGS = ("torchaudio", "torchtext", "torchdata", "torchrec", "torchao", "triton", "pytorch-triton")
_DAY = r"(?P<year>20[12]\d)[-_/.]?(?P<month>[01]\d)[-_/.]?(?P<day>[0-3]?\d)(?!\d)"
_NIGHTLY_DAY = re.compile(rf"\bnightl(?:y|ies)\b[^\n\d]{{0,40}}{_DAY}", re.IGNORECASE)
_DAY_NIGHTLY = re.compile(rf"(?<![\d.]){_DAY}[\s`'\"*()-]{{1,6}}nightl(?:y|ies)\b", re.IGNORECASE)
_DEV_DAY = re.compile(rf"(?<![\w.])dev{_DAY}", re.IGNORECASE)
_COMMIT = re.compile(
    r"\b(?:main|master|trunk|viable/strict|source|commit|git)\b[\s`'\"*:@(\[#=]{1,8}"
    r"(?:at |from |commit |of |hash ){0,2}[`'\"(\[]{0,2}(?:https://github\.com/pytorch/pytorch/commit/)?"
    r"(?P<commit>(?=[0-9a-f]{0,39}\d)[0-9a-f]{7,40})(?![\w])",
    re.IGNORECASE,
)
_UNDATED = re.compile(
    r"\b(?:latest|current|today['’]?s|recent|on|with|using|pytorch|torch|version:?|the)\s{1,3}(?:the\s{1,3})?"
    r"(?:pytorch\s{1,3})?[`*]{0,2}(?P<name>nightly|nightlies|main|master|trunk)\b",
    re.IGNORECASE,
)
_SURELY_MAIN = re.compile(r"torch|latest|current|recent|today", re.IGNORECASE)
#: The example in an old issue form.
_EXAMPLE = "(e.g., 1.0)"
#: The most versions that are kept, and the most characters of a line that are read.
_MOST_VERSIONS, _MOST_CHARACTERS = 20, 1_000


@dataclass(frozen=True)
class StatedTorch:
    """The versions of torch that an issue states.

    Attributes:
        failing: the versions where it fails or that are stated without a judgment, the most reliable first.
        working: the versions of which the issue says that it works there.
    """

    failing: tuple[str, ...] = ()
    working: tuple[str, ...] = ()

    @property
    def first(self) -> str | None:
        """The version to run on; one that can be looked up rather than a name such as ``nightly``."""
        exact = [version for version in self.failing if version[0].isdigit()]
        return next(iter((*exact, *self.failing)), None)


def stated_torch(versions: str, body: str, title: str = "") -> StatedTorch:
    """Read the versions of torch in an issue.

    Args:
        versions: the section where the issue's form asks for them; empty if there is none.
        body: the whole body.
        title: the title.
    """
    body = body.replace(_EXAMPLE, "")
    prose = f"{outside_fences(body)}\n{title}"
    said = list(_said(lines_of(prose)))
    working = [version for version, works in said if works]
    broken = [version for version, works in said if works is False]
    listed = [*_listed(lines_of(versions.replace(_EXAMPLE, ""))), *_listed(lines_of(body))]
    # People collect the environment where it works, too: then what they say comes first.
    trusted = [version for version in listed if not (broken and any(_same(version, other) for other in working))]
    failing = [*trusted, *broken, *(version for version, works in said if works is None)]
    if not failing:
        failing = [one for one in _alone(lines_of(versions)) if not any(_same(one, other) for other in working)]
    if not failing:
        failing = [version for version in listed if not any(_same(version, other) for other in working)]
    if not failing:
        failing = [version for version, works in _said(lines_of(body)) if not works]
    if not failing and versions.strip(" \n\r`.*_").lower() in ("main", "master", "trunk", "nightly", "latest nightly"):
        failing = [_undated(versions.strip(" \n\r`.*_").split()[-1])]
    return StatedTorch(_without_repeats(failing), _without_repeats(working))


def _without_repeats(versions: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(versions))[:_MOST_VERSIONS]


def _same(one: str, other: str) -> bool:
    """Return true if the shorter of two versions may stand for the longer: 2.5 for 2.5.1+cu124."""
    short, long = sorted((one.partition("+")[0], other.partition("+")[0]), key=len)
    return long == short or long.startswith(f"{short}.")


def _listed(lines: Iterable[str]) -> list[str]:
    """Return the versions in the output of programs: collect_env first, then installers, then a version alone."""
    found: tuple[list[str], list[str], list[str]] = ([], [], [])
    for line in (text[:_MOST_CHARACTERS] for text in lines):
        if match := _COLLECTED.match(line):
            found[0].append(_written(match["version"]))
        for match in _INSTALLED.finditer(line):
            found[1].append(_written(match["version"] or match["version2"]))
        if (match := _ALONE.match(line)) and ("+" in match["version"] or "dev" in match["version"]):
            found[2].append(_written(match["version"]))
    return [version for versions in found for version in versions if _plausible(version)]


def _alone(lines: Iterable[str]) -> list[str]:
    """Return the versions that stand alone on a line where only versions stand; 3.11 is one of Python."""
    written: list[str] = []
    for line in (text[:_MOST_CHARACTERS] for text in lines):
        if match := _LINE.match(line):
            written.append(_written(match["version"]))
        elif match := _LINE_OF_SEVERAL.match(line):
            further = [version for _, version, _ in _further(line, match.end())]
            written += map(_written, (match["version"], *further))
    return [version for version in written if _plausible(version) and not version.startswith("3")]


def _said(lines: Iterable[str]) -> Iterator[tuple[str, bool | None]]:
    """Yield the versions that sentences name, and whether they say that it works there."""
    for line in (text[:_MOST_CHARACTERS] for text in lines):
        if not any(sign.isdigit() for sign in line) and not _UNDATED.search(line):
            continue
        parts: list[Clause] | None = None
        for position, version, bare in sorted(_versions_in(line)):
            parts = clauses(line) if parts is None else parts
            works = _works(parts, line, position)
            if not bare or works is not None:
                yield version, works


def _versions_in(line: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the position of each version in a line, the version, and true if nothing says that it is torch's."""
    taken: set[int] = set()
    for match in _NAMED.finditer(line):
        end = match.end()
        for place, version, after in [(match.start("version"), match["version"], end), *_further(line, end)]:
            if place not in taken and _plausible(_written(version)):
                taken.add(place)
                yield place, _written(version), False
            end = after
    for match in _BARE.finditer(line):
        place = match.start("version")
        if (
            place not in taken
            and _plausible(_written(match["version"]))
            and _may_be_torch(line[:place], match["version"])
        ):
            taken.add(place)
            version = _written(match["version"])
            yield place, version, "dev" not in version and "a0" not in version
    dated = False
    for match in (match for form in (_NIGHTLY_DAY, _DAY_NIGHTLY, _DEV_DAY) for match in form.finditer(line)):
        day = f"{match['year']}-{match['month']}-{match['day']:0>2}"
        if _in_calendar(day) and f"dev{day.replace('-', '')}" not in line:
            dated = True
            yield match.start(), day, False
    for match in _COMMIT.finditer(line):
        vague = match.group().lower().startswith(("git", "source", "commit"))
        if not vague or any(word in line.lower() for word in ("torch", "main")):
            dated = True
            yield match.start(), f"main@{match['commit']}", False
    if not dated and "dev20" not in line:
        for match in _UNDATED.finditer(line):
            name = _undated(match["name"])
            yield match.start("name"), name, name == "main" and not _SURELY_MAIN.search(match.group())


def _further(line: str, end: int) -> Iterator[tuple[int, str, int]]:
    """Yield the versions that follow one of torch in a list."""
    for _ in range(_MOST_VERSIONS):
        match = _FURTHER.match(line, end)
        if match is None:
            return
        end = match.end()
        if match["version"]:
            yield match.start("version"), match["version"], end
        else:
            yield match.start("nightly"), _undated(match["nightly"]), end


def _undated(name: str) -> str:
    return "nightly" if name.lower().startswith("nightl") else "main"


def _may_be_torch(before: str, version: str) -> bool:
    """Return true if the words before a version do not say that it is that of another program."""
    words = before[-40:].lower().replace("`", " ").replace("*", " ").split()
    if "dev20" in version or "a0+git" in version:
        return not words or not words[-1].startswith(_SIBLINGS)
    if words[-2:] == ["version", "is"]:
        return True
    return not words or words[-1] in _BEFORE_BARE.split() or words[-1][-1] in ",;(|→>:/"


def _works(parts: list[Clause], line: str, position: int) -> bool | None:
    """Return what a line says of the version at a position; a judgment may also stand in the next clause or before."""
    number = next(n for n, part in enumerate(parts) if position <= part.end)
    own = parts[number]
    if re.search(r"\bfrom\s{1,3}(?:(?:py)?torch\s{1,3})?[`v]{0,2}$", line[max(0, position - 25) : position], re.I):
        # "a regression from 2.5 to 2.6", "after an upgrade from 2.5"
        return True
    after = parts[number + 1] if number + 1 < len(parts) else None
    judged_after = after is not None and after.works is not None and not _DIGIT.search(line, after.start, after.end)
    if after is not None and judged_after and line[own.end : own.end + 1] == "(" and own.end - position < 30:
        # "broken between 2.5.1 (good) and 2.6.0 (bad)"
        return after.works
    if own.works is not None:
        return own.works
    if after is not None and judged_after:
        return after.works
    before = parts[number - 1] if number else None
    if before is not None and before.works is not None and line[before.end : own.start].strip() in (",", "(", ":", ""):
        return before.works
    return None


def _written(text: str) -> str:
    """Return a version as packages write it."""
    version, plus, local = text.lower().partition("+")
    version = version.replace("-dev", ".dev").replace("-", "").replace("rc.", "rc")
    return f"{version}{plus}{local.rstrip('.')}" if local.rstrip(".") else version


def _plausible(version: str) -> bool:
    """Return true for a version that torch may have."""
    if not version[0].isdigit():
        return True
    major, _, rest = version.partition(".")
    minor = int(re.match(r"\d+", rest)[0])  # type: ignore[index]  # the patterns have a digit there
    return (major == "1" and minor <= 14) or (major == "2" and minor <= 60) or major == "3"


def _in_calendar(day: str) -> bool:
    try:
        datetime.date.fromisoformat(day)
    except ValueError:
        return False
    return True
