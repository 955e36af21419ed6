"""The search: the best tree so far and the ways to better it; never a step up, and nothing asked twice."""

from __future__ import annotations

import ast
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from torchbisect.core.trace import Trace
from torchbisect.minimizer.budget import BudgetSpent, Ledger, Progress, Statistics
from torchbisect.minimizer.sort_key import Measure, measure
from torchbisect.minimizer.syntax.tree import Edit, Replacement, Unfit, apply, children, parse, text_of, tidy

ROOM = 8
"""How many nodes a rewording may cost."""
IN_A_ROW = 2
"""After so many wins, one directly behind the other, several options are tried at once."""


class Search:
    """The best tree so far, and the ways to better it.

    Passes see this and nothing else of the machinery: the ``tree``, what a ``trace`` says of its lines, and the
    questions ``attempt``, ``bisect``, ``scan`` and ``venture``.
    """

    def __init__(
        self,
        tree: ast.Module,
        ledger: Ledger,
        *,
        trace: Trace | None = None,
        on_best: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.tree = tree
        self.text = text_of(tree)
        self.measure: Measure = measure(tree, self.text)
        self.ledger = ledger
        self.trace = trace
        self.trajectory: list[tuple[int, float, int]] = []
        self._failed: set[tuple[str, str]] = set()
        self._on_best = on_best

    def begin(self, text: str, trace: Trace | None) -> None:
        """Start a turn from the best so far, written so, as a new reduction of it would."""
        self.tree = tidy(parse(text))
        self.trace = trace
        self.ledger.begin(self.tree)
        self._failed.clear()

    def attempt(self, tree: ast.Module | None, then: Iterable[ast.Module | None] = ()) -> bool:
        """Ask about a tree if it is smaller than the best, and make it the best if the mismatch is still there.

        Args:
            tree: the candidate; ``None`` for an edit that left none.
            then: what will be attempted if it isn't taken.
        """
        text = self._asked_of(tree)
        if tree is None or text is None:
            return False
        if not self.ledger.answer(text, (next_text for item in then if (next_text := self._asked_of(item)))):
            return False
        self._take(tree, text, measure(tree, text))
        return True

    def _asked_of(self, tree: ast.Module | None) -> str | None:
        """The text to ask about, or ``None`` for a candidate that isn't worth a question."""
        if tree is None:
            return None
        try:
            text = text_of(tree)
        except (RecursionError, ValueError):
            return None
        if text == self.text or not measure(tree, text) < self.measure:
            return None
        return text if self.ledger.sound(tree, text) else None

    def first(self, trees: Iterable[ast.Module | None]) -> int | None:
        """Attempt one tree after the other until one is taken; returns its number, ``None`` if none is."""
        source, made = enumerate(trees), deque[tuple[int, "ast.Module | None"]]()

        def following() -> Iterator[ast.Module | None]:
            for item in source:
                made.append(item)
                yield item[1]

        while (item := made.popleft() if made else next(source, None)) is not None:
            if self.attempt(item[1], following()):
                return item[0]
        return None

    def reworded(self, tree: ast.Module) -> bool:
        """Ask about a tree that says the same better, at the cost of a few nodes, and keep it if it shows it."""
        text = text_of(tree)
        size = measure(tree, text)
        if text == self.text or size.nodes > min(self.measure.nodes + ROOM, self.ledger.most_nodes):
            return False
        if not self.ledger.sound(tree, text) or not self.ledger.answer(text):
            return False
        self._take(tree, text, size)
        return True

    def settle(self, tree: ast.Module) -> None:
        """Go back to a tree that was the best before."""
        text = text_of(tree)
        if text != self.text:
            self._take(tree, text, measure(tree, text))

    def _take(self, tree: ast.Module, text: str, size: Measure) -> None:
        ledger = self.ledger
        statistics = ledger.statistics.setdefault(ledger.stage, Statistics())
        statistics.accepted += 1
        statistics.bytes_won += len(self.text) - len(text)
        self.tree, self.text, self.measure = tree, text, size
        self.trajectory.append((ledger.asked, ledger.seconds, len(text)))
        self._on_best(text + "\n")
        ledger.on_progress(Progress(ledger.stage, ledger.asked, len(text), size.nodes, ledger.seconds))

    def edited(self, edits: Iterable[Edit]) -> bool:
        """``attempt`` the best tree with these edits; ``False`` also where they leave no tree."""
        return self.attempt(applied(self.tree, edits))

    def bisect(self, edits: Sequence[Edit]) -> int:
        """Make as many of these edits as the mismatch allows, by halving; returns how many.

        The first are taken away last: uses stand behind definitions, so they have to go before them. All the edits
        are of the tree as it is now; it is only exchanged for the edited one.
        """
        base, kept = self.tree, list[Edit]()
        keys = self._keys(base)
        stack = [[edit for edit in edits if keys(edit) not in self._failed]]
        while stack:
            part = stack.pop()
            rest = [*stack, *_halves(part)]
            if self.attempt(applied(base, [*kept, *part]), (applied(base, [*kept, *item]) for item in _in_turn(rest))):
                kept.extend(part)
                continue
            stack = rest
            if len(part) == 1:
                self._failed.add(keys(part[0]))
        return len(kept)

    def scan(self, options: Callable[[ast.Module], Iterator[Edit]]) -> int:
        """Ask about one option after the other.

        After a win go on at the same place of the new tree; where one wins after the other, more and more are made
        before the next question, which saves the cost of the wins. Returns the wins.
        """
        place, wins, row = 0, 0, 0
        while True:
            if row >= IN_A_ROW:
                tree, made = self._several(options, place, 2 ** (row - IN_A_ROW + 1))
                if made > 1 and self.attempt(tree):
                    wins, row = wins + made, row + 1
                    continue
            tried: dict[tuple[str, str], int] = {}
            won = self.first(self._untried(options, place, tried))
            self._failed.update(list(tried)[:won])
            if won is None:
                return wins
            row = 1 if won or row >= IN_A_ROW else row + 1
            place, wins = list(tried.values())[won], wins + 1

    def _several(
        self, options: Callable[[ast.Module], Iterator[Edit]], place: int, most: int
    ) -> tuple[ast.Module, int]:
        """The best tree with several options from a place on, each of the tree that the ones before it left."""
        tree, made = self.tree, 0
        while made < most:
            try:
                following = next(filter(None, self._untried(options, place, {}, tree)), None)
            except (RecursionError, ValueError):
                break  # the tree has no text; ``attempt`` will say so
            if following is None:
                break
            tree, made = following, made + 1
        return tree, made

    def _untried(
        self,
        options: Callable[[ast.Module], Iterator[Edit]],
        place: int,
        tried: dict[tuple[str, str], int],
        tree: ast.Module | None = None,
    ) -> Iterator[ast.Module | None]:
        """A tree, or the best, with each edit from a place on that hasn't failed; notes their keys and places."""
        tree = tree or self.tree
        keys = self._keys(tree)
        for number, edit in enumerate(options(tree)):
            if number >= place and (key := keys(edit)) not in self._failed and key not in tried:
                tried[key] = number
                yield applied(tree, [edit])

    def _keys(self, tree: ast.Module) -> Callable[[Edit], tuple[str, str]]:
        """What an edit is known by when the rest of the tree has changed: its statements, and what it does.

        An edit that failed once in a statement mostly fails again: it is only asked about again in another turn.
        """
        owners: dict[int, ast.AST] = {}

        def own(node: ast.AST, statement: ast.AST) -> None:
            inner = node if isinstance(node, ast.stmt) else statement
            owners[id(node)] = inner
            for child in children(node):
                own(child, inner)

        own(tree, tree)

        texts: dict[int, str] = {}

        def text(owner: ast.AST) -> str:
            if id(owner) not in texts:
                texts[id(owner)] = text_of(owner)
            return texts[id(owner)]

        def key(edit: Edit) -> tuple[str, str]:
            where = "\n".join(text(owners[id(node)]) for node, _ in edit.changes if id(node) in owners)
            what = "\n".join(f"{_shown(old)} -> {_shown(new)}" for old, new in edit.changes)
            return f"{self.ledger.stage}\n{where}", what

        return key

    def rush(self, options: Callable[[ast.Module], Iterator[Edit]], most: int = 64) -> int:
        """Like ``scan`` for options that mostly hold: many are made before one question.

        Each is taken of the tree that the ones before it left. After a failure fewer at a time. Returns the wins.
        """
        place, size, wins = 0, most, 0
        while True:
            tree, made = self.tree, 0
            while made < size:
                edit = next(itertools.islice(options(tree), place, None), None)
                if edit is None:
                    break
                try:
                    tree = apply(tree, [edit])
                except Unfit:
                    break
                made += 1
            if self.attempt(tree):
                wins, size = wins + 1, size * 2
            elif made > 1:
                size = made // 2
            elif next(itertools.islice(options(self.tree), place, None), None) is None:
                return wins
            else:
                place, size = place + 1, 2

    def venture(self, tree: ast.Module, finish: Callable[[Search], None], questions: int) -> bool:
        """Step up to a larger tree and let ``finish`` shrink it; keep it only if it ends smaller than the best.

        This is the one way up the order: a restructuring may grow first, and must win within ``questions``.
        """
        try:
            text = text_of(tree)
        except (RecursionError, ValueError):
            return False
        ledger = self.ledger
        if text == self.text or not ledger.sound(tree, text) or not ledger.answer(text):
            return False
        branch = Search(tree, ledger, trace=self.trace)
        outer, limit = ledger.most_turn, len(ledger.turn) + questions
        ledger.most_turn = limit if outer is None else min(limit, outer)
        try:
            if not branch.measure < self.measure:
                finish(branch)
        except BudgetSpent:
            pass
        finally:
            ledger.most_turn = outer
        if branch.measure < self.measure:
            self._take(branch.tree, branch.text, branch.measure)
            return True
        return False


def applied(tree: ast.Module, edits: Iterable[Edit]) -> ast.Module | None:
    """A tree with edits made; ``None`` where they leave none."""
    try:
        return apply(tree, edits)
    except Unfit:
        return None


def _halves(part: list[Edit]) -> list[list[Edit]]:
    """The two halves of what can be halved; empty ones are left out."""
    middle = len(part) // 2
    return [half for half in (part[:middle], part[middle:]) if half] if len(part) > 1 else []


def _in_turn(stack: list[list[Edit]]) -> Iterator[list[Edit]]:
    """What comes off a stack of parts if none of them can be done."""
    while stack:
        *rest, part = stack
        yield part
        stack = [*rest, *_halves(part)]


def _shown(part: Replacement) -> str:
    if isinstance(part, list):
        return "; ".join(_shown(item) for item in part)
    return "nothing" if part is None else f"{getattr(part, 'col_offset', '')} {ast.dump(part)}"
