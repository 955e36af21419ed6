"""The search of a reduction: the best tree so far, and the questions by which passes make it smaller."""

from __future__ import annotations

import ast
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from torchbisect.core.python_text import parse_python
from torchbisect.core.trace import Trace
from torchbisect.minimizer.budget import BudgetExhausted, PassSuspended, Progress
from torchbisect.minimizer.interestingness import InterestingnessTest
from torchbisect.minimizer.syntax.edit_keys import edit_keys
from torchbisect.minimizer.syntax.edits import Edit, InvalidEdit, apply, apply_or_none, tidy
from torchbisect.minimizer.syntax.tree import text_of, walk

MAX_GROWTH = 8
"""Number of nodes by which a rewrite may enlarge the script."""
BATCH_AFTER = 2
"""Number of consecutive successes after which ``scan`` makes several edits in one question."""

Options = Callable[[ast.Module], Iterator[Edit]]
"""The edits that a pass offers for a tree, in a fixed order."""
_EditKey = tuple[str, str]


@dataclass(frozen=True, order=True)
class SortKey:
    """The place of a candidate in the order: fewer nodes, then fewer names, then shorter text, then the text itself.

    The text comes last so that no two candidates are equal, and so that ``f(1)`` is smaller than ``f(8)``.
    """

    nodes: int
    names: int
    length: int
    text: str


def sort_key(tree: ast.AST, text: str) -> SortKey:
    """Return the sort key of a tree with this text."""
    count = 0
    names: set[str] = set()
    for node in walk(tree):
        count += 1
        for field in ("id", "name", "arg", "attr", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                names.add(value)
    return SortKey(count, len(names), len(text), text)


class ReductionSearch:
    """The best tree so far, and the ways to replace it by a smaller one.

    A pass reads ``tree`` and ``trace``, and asks through ``attempt``, ``attempt_first``, ``attempt_edits``,
    ``attempt_rewrite``, ``delta_debug``, ``scan``, ``scan_in_batches`` and ``pump``. It uses nothing else.

    Attributes:
        trace: an eager run of the script, or ``None``; line numbers of the tree's nodes refer to it.
        trajectory: after each success the number of questions, the seconds since the start, and the bytes.
    """

    def __init__(
        self,
        tree: ast.Module,
        interestingness: InterestingnessTest,
        *,
        trace: Trace | None = None,
        on_best: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.tree = tree
        self.text = text_of(tree)
        self.key: SortKey = sort_key(tree, self.text)
        self.interestingness = interestingness
        self.trace = trace
        self.trajectory: list[tuple[int, float, int]] = []
        self._failed: set[_EditKey] = set()
        self._on_best = on_best

    def begin_round(self, text: str, trace: Trace | None) -> None:
        """Start a round from the best script, as a new reduction of its text would start."""
        self.tree = tidy(parse_python(text))
        self.trace = trace
        self.interestingness.begin_round(self.tree)
        self._failed.clear()

    def attempt(self, tree: ast.Module | None, following: Iterable[ast.Module | None] = ()) -> bool:
        """Ask about a tree that is smaller than the best, and make it the best if it is interesting.

        ``None`` stands for an invalid edit; ``following`` are the candidates that come next if this one fails.
        """
        text = self._text_to_ask(tree)
        if tree is None or text is None:
            return False
        following_texts = (next_text for item in following if (next_text := self._text_to_ask(item)))
        if not self.interestingness.is_interesting(text, following_texts):
            return False
        self._accept(tree, text, sort_key(tree, text))
        return True

    def _text_to_ask(self, tree: ast.Module | None) -> str | None:
        """Return the text of a candidate, or ``None`` if the candidate is not worth a question."""
        if tree is None:
            return None
        try:
            text = text_of(tree)
        except (RecursionError, ValueError):
            return None
        if text == self.text or not sort_key(tree, text) < self.key:
            return None
        return text if self.interestingness.passes_filter(tree, text) else None

    def attempt_first(
        self, trees: Iterable[ast.Module | None], on_failure: Callable[[int], object] = lambda index: None
    ) -> int | None:
        """Attempt trees in order until one is accepted; return its index, or ``None`` if none is.

        ``on_failure`` gets the index of each that is not, at once: the pass may be suspended before the next one.
        """
        source, made = enumerate(trees), deque[tuple[int, "ast.Module | None"]]()

        def following() -> Iterator[ast.Module | None]:
            for item in source:
                made.append(item)
                yield item[1]

        while (item := made.popleft() if made else next(source, None)) is not None:
            if self.attempt(item[1], following()):
                return item[0]
            on_failure(item[0])
        return None

    def attempt_once(self, edit: Edit, tree: ast.Module | None, base: ast.Module | None = None) -> bool:
        """Attempt a tree that an edit of the best, or of ``base``, leads to, unless it has failed in this round."""
        key = self._edit_keys(base or self.tree)(edit)
        if key in self._failed:
            return False
        won = self.attempt(tree)
        if not won:
            self._failed.add(key)
        return won

    def attempt_first_once(self, edits: Sequence[Edit], made: Callable[[Edit], ast.Module | None]) -> int | None:
        """Attempt the trees made of edits that have not failed before; return the place of the one accepted."""
        edit_key = self._edit_keys(self.tree)
        keys = [edit_key(edit) for edit in edits]
        untried = [place for place, key in enumerate(keys) if key not in self._failed]
        won = self.attempt_first(
            (made(edits[place]) for place in untried), lambda index: self._failed.add(keys[untried[index]])
        )
        return None if won is None else untried[won]

    def attempt_edits(self, edits: Iterable[Edit]) -> bool:
        """Attempt the best tree with these edits; return ``False`` also if they are invalid."""
        return self.attempt(apply_or_none(self.tree, edits))

    def attempt_rewrite(self, tree: ast.Module) -> bool:
        """Ask about a tree that reads better, even if it is a few nodes larger, and keep it if it is interesting."""
        text = text_of(tree)
        key = sort_key(tree, text)
        if text == self.text or key.nodes > min(self.key.nodes + MAX_GROWTH, self.interestingness.most_nodes):
            return False
        if not self.interestingness.passes_filter(tree, text) or not self.interestingness.is_interesting(text):
            return False
        self._accept(tree, text, key)
        return True

    def restore(self, tree: ast.Module) -> None:
        """Make a tree the best that was the best before."""
        text = text_of(tree)
        if text != self.text:
            self._accept(tree, text, sort_key(tree, text))

    def _accept(self, tree: ast.Module, text: str, key: SortKey) -> None:
        test = self.interestingness
        test.current.accepted += 1
        test.current.bytes_won += len(self.text) - len(text)
        test.sizes.append((test.asked, key.nodes))
        self.tree, self.text, self.key = tree, text, key
        self.trajectory.append((test.asked, test.seconds, len(text)))
        self._on_best(text + "\n")
        test.on_progress(Progress(test.stage, test.asked, len(text), key.nodes, test.seconds))

    def delta_debug(self, edits: Sequence[Edit]) -> int:
        """Make as many of these edits as the mismatch allows, and return their number.

        The edits are made all at once, then in halves, as in delta debugging; one by one where the questions of this
        pass mostly failed so far. The last edits are made first: uses of a name stand behind its definition, so they
        have to be removed before it. All edits are edits of the current tree.
        """
        base, kept, consecutive = self.tree, list[Edit](), 0
        edit_key = self._edit_keys(base)
        wanted = [edit for edit in edits if edit_key(edit) not in self._failed]
        stack = [[edit] for edit in wanted] if self.interestingness.current.mostly_failed else [wanted]
        while stack:
            part = stack.pop()
            for _ in range(2 ** (consecutive - 1) - 1 if consecutive >= BATCH_AFTER else 0):
                part = [*stack.pop(), *part] if stack else part
            rest = [*stack, *_halves(part)]
            following = (apply_or_none(base, [*kept, *item]) for item in _parts_if_all_fail(rest))
            if self.attempt(apply_or_none(base, [*kept, *part]), following):
                kept.extend(part)
                consecutive += 1
                continue
            stack, consecutive = rest, 0
            if len(part) == 1:
                self._failed.add(edit_key(part[0]))
        return len(kept)

    def scan(self, options: Options) -> int:
        """Attempt one edit after the other, and return the number of edits made.

        After a success the scan continues at the same position of the new tree. After several consecutive successes it
        makes a growing number of edits before the next question.
        """
        position, made, consecutive = 0, 0, 0
        while True:
            if consecutive >= BATCH_AFTER:
                tree, count = self._with_several(options, position, 2 ** (consecutive - BATCH_AFTER + 1))
                if count > 1 and self.attempt(tree):
                    made, consecutive = made + count, consecutive + 1
                    continue
            tried: dict[_EditKey, int] = {}
            index = self.attempt_first(self._untried(options, position, tried), self._failure_of(tried))
            if index is None:
                return made
            consecutive = 1 if index or consecutive >= BATCH_AFTER else consecutive + 1
            position, made = list(tried.values())[index], made + 1

    def _with_several(self, options: Options, position: int, most: int) -> tuple[ast.Module, int]:
        """Return the best tree with several edits from a position on, each an edit of the tree before it."""
        tree, made = self.tree, 0
        while made < most:
            try:
                following = next(filter(None, self._untried(options, position, {}, tree)), None)
            except (RecursionError, ValueError):
                break  # the tree has no text; `attempt` handles that
            if following is None:
                break
            tree, made = following, made + 1
        return tree, made

    def _untried(
        self, options: Options, position: int, tried: dict[_EditKey, int], tree: ast.Module | None = None
    ) -> Iterator[ast.Module | None]:
        """Yield a tree, or the best, with each edit from a position on that has not failed; record it in ``tried``."""
        tree = tree or self.tree
        edit_key = self._edit_keys(tree)
        for number, edit in enumerate(options(tree)):
            if number >= position and (key := edit_key(edit)) not in self._failed and key not in tried:
                tried[key] = number
                yield apply_or_none(tree, [edit])

    def _failure_of(self, tried: Iterable[_EditKey]) -> Callable[[int], object]:
        """Return a function that records the edit at a place as failed."""
        return lambda place: self._failed.add(list(tried)[place])

    def _edit_keys(self, tree: ast.Module) -> Callable[[Edit], _EditKey]:
        """Return a function that identifies an edit of a tree by its pass, its place and its effect."""
        key = edit_keys(tree)
        return lambda edit: (self.interestingness.stage, key(edit))

    def scan_in_batches(self, options: Options, most: int = 64) -> int:
        """Attempt edits that mostly succeed, many in one question, and return the number of successes.

        Each edit is an edit of the tree that the one before it left. After a failure the batches get smaller.
        """
        position, size, successes = 0, most, 0
        while True:
            tree, made = self.tree, 0
            while made < size:
                edit = next(itertools.islice(options(tree), position, None), None)
                if edit is None:
                    break
                try:
                    tree = apply(tree, [edit])
                except InvalidEdit:
                    break
                made += 1
            if self.attempt(tree):
                successes, size = successes + 1, size * 2
            elif made > 1:
                size = made // 2
            elif next(itertools.islice(options(self.tree), position, None), None) is None:
                return successes
            else:
                position, size = position + 1, 2

    def pump_once(self, name: str, tree: ast.Module, finish: Callable[[ReductionSearch], None], questions: int) -> bool:
        """Call ``pump``, but not again in this round for a ``name`` with which it failed."""
        key = (self.interestingness.stage, f"pump {name}")
        if key in self._failed:
            return False
        won = self.pump(tree, finish, questions)
        if not won:
            self._failed.add(key)
        return won

    def pump(self, tree: ast.Module, finish: Callable[[ReductionSearch], None], questions: int) -> bool:
        """Start from a larger tree, let ``finish`` shrink it, and keep the result only if it is smaller than the best.

        Only here may the script grow: some restructurings grow it first, and pay off within ``questions`` questions.
        The term is Shrink Ray's.
        """
        try:
            text = text_of(tree)
        except (RecursionError, ValueError):
            return False
        test = self.interestingness
        if text == self.text or not test.passes_filter(tree, text) or not test.is_interesting(text):
            return False
        branch = ReductionSearch(tree, test, trace=self.trace)
        outer, limit = test.request_limit, len(test.requested) + questions
        test.request_limit = limit if outer is None else min(limit, outer)
        try:
            if not branch.key < self.key:
                finish(branch)
        except (BudgetExhausted, PassSuspended):
            pass
        finally:
            test.request_limit = outer
        if branch.key < self.key:
            self._accept(branch.tree, branch.text, branch.key)
            return True
        return False


def _halves(part: list[Edit]) -> list[list[Edit]]:
    """Return the two halves of a list of at least two edits, else nothing."""
    middle = len(part) // 2
    return [part[:middle], part[middle:]] if len(part) > 1 else []


def _parts_if_all_fail(stack: list[list[Edit]]) -> Iterator[list[Edit]]:
    """Yield the parts in the order in which ``delta_debug`` attempts them if each of them fails."""
    while stack:
        *rest, part = stack
        yield part
        stack = [*rest, *_halves(part)]
