# torch: 2.13.0
import functools
import heapq

import torch

WALLS = [
    "....#...",
    ".##.#.#.",
    "...#..#.",
    ".#...##.",
    "...#....",
]


class Cell:
    __slots__ = ("row", "col")

    def __init__(self, row, col):
        self.row = row
        self.col = col

    def __eq__(self, other):
        return self.row == other.row and self.col == other.col

    def __hash__(self):
        return self.row * 1009 + self.col

    def shifted(self, dr, dc):
        return Cell(self.row + dr, self.col + dc)


class Maze:
    def __init__(self, rows):
        self.height = len(rows)
        self.width = len(rows[0])
        self.blocked = [[c == "#" for c in row] for row in rows]

    def free(self, cell):
        if not (0 <= cell.row < self.height and 0 <= cell.col < self.width):
            return False
        return not self.blocked[cell.row][cell.col]

    def neighbours(self, cell):
        for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            other = cell.shifted(dr, dc)
            if self.free(other):
                yield other


class Report:
    def __init__(self):
        self.rings = []

    def record(self, ring):
        self.rings.append(len(ring))

    @property
    def total(self):
        return sum(self.rings)


def flood(cost, maze, start, radius, report):
    visited = {start}
    ring = [start]
    report.record(ring)
    spent = cost[start.row, start.col]
    for distance in range(1, radius + 1):
        following = []
        for cell in ring:
            for other in maze.neighbours(cell):
                if other in visited:
                    continue
                visited.add(other)
                following.append(other)
                spent = spent + cost[other.row, other.col] / distance
        report.record(following)
        ring = following
    return spent


def distances(rows, start):
    best = {start: 0}
    queue = [(0, start)]
    while queue:
        d, (r, c) = heapq.heappop(queue)
        for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            y, x = r + dr, c + dc
            if 0 <= y < len(rows) and 0 <= x < len(rows[0]) and rows[y][x] == ".":
                if (y, x) not in best or best[y, x] > d + 1:
                    best[y, x] = d + 1
                    heapq.heappush(queue, (d + 1, (y, x)))
    return best


def terrain(height, width):
    rows = torch.arange(height, dtype=torch.float32).unsqueeze(1)
    cols = torch.arange(width, dtype=torch.float32).unsqueeze(0)
    return 1.0 + (rows * 0.7 + cols * 0.3).cos().abs()


def main():
    maze = Maze(WALLS)
    cost = terrain(maze.height, maze.width)
    report = Report()
    radius = 3
    run = torch.compile(functools.partial(flood), backend="eager")
    spent = run(cost, maze, Cell(0, 0), radius, report)

    best = distances(WALLS, (0, 0))
    want = cost[0, 0].item()
    counts = [0] * (radius + 1)
    for (r, c), d in best.items():
        if d <= radius:
            counts[d] += 1
            if d:
                want += cost[r, c].item() / d
    assert report.total == sum(counts), (report.rings, counts)
    assert abs(spent.item() - want) < 1e-4, (spent.item(), want)
    print("reached", report.total, "cost", round(want, 3))


if __name__ == "__main__":
    main()
