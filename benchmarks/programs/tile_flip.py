# torch: 2.13.0
"""Elevation tiles: read, orient, fill holes, take slopes, and sum up per zone. All functions, no modules.

Some scanners deliver a tile column by column. Its header says so, and the orienting step turns it in place.
"""
import functools as ft
import math
import operator as op
import string
from collections import ChainMap, namedtuple
from contextlib import suppress
from fractions import Fraction

import torch

Header = namedtuple("Header", "name rows cols order nodata cell", defaults=(-1.0, Fraction(1, 2)))
Tile = namedtuple("Tile", "header data")

DEFAULTS = {"fill": "mean", "kernel": 3, "units": "m", "verbose": False}
OVERRIDES = {"fill": "zero"}
settings = ChainMap(OVERRIDES, DEFAULTS)

FILLERS = {
    "mean": lambda t, hole: torch.where(hole, t[~hole].mean(), t),
    "zero": lambda t, hole: torch.where(hole, torch.zeros(()), t),
}

SCALES = {"m": 1.0, "ft": 0.3048}


def pipe(*stages):
    return ft.reduce(lambda f, g: lambda *a: g(f(*a)), stages)


def labelled(fn):
    @ft.wraps(fn)
    def inner(tile, *rest):
        out = fn(tile, *rest)
        if settings["verbose"]:
            print(fn.__name__, tuple(out.data.shape))
        return out

    return inner


def synthetic(header, seed):
    g = torch.Generator()
    g.manual_seed(seed)
    ridge = torch.linspace(0, math.pi, header.rows).sin()[:, None] * 40
    noise = torch.rand(header.rows, header.cols, generator=g)
    data = ridge + noise
    data[0, -1] = header.nodata
    return Tile(header, data)


@labelled
def to_metres(tile):
    return tile._replace(data=tile.data * SCALES[settings["units"]])


@labelled
def fill(tile):
    hole = tile.data == tile.header.nodata
    return tile._replace(data=FILLERS[settings["fill"]](tile.data, hole))


def orient(tile):
    grid = tile.data.clone()
    if tile.header.order == "column":
        grid.t_()
    return grid, grid.shape[0] * grid.stride(0)


def slopes(grid, cell):
    dy = (grid[2:, 1:-1] - grid[:-2, 1:-1]) / (2 * cell)
    dx = (grid[1:-1, 2:] - grid[1:-1, :-2]) / (2 * cell)
    return (dx.square() + dy.square()).sqrt()


def hillshade(grid, cell, azimuth=315.0, altitude=45.0):
    az, alt = map(math.radians, (azimuth, altitude))
    slope = slopes(grid, cell).atan()
    return (math.sin(alt) * slope.cos() + math.cos(alt) * slope.sin() * math.cos(az)).clamp(0, 1)


def surface(tile):
    grid, reach = orient(tile)
    cell = float(tile.header.cell)
    shade = hillshade(grid, cell)
    lines = grid.shape[0]
    return shade, shade.mean() / lines, lines, reach


def zones(shade, count):
    edges = torch.linspace(0, 1, count + 1)
    index = torch.bucketize(shade.flatten(), edges[1:-1])
    return torch.bincount(index, minlength=count)


def smooth(shade, size):
    pad = size // 2
    image = shade[None, None]
    kernel = torch.full((1, 1, size, size), 1 / size**2)
    return torch.nn.functional.conv2d(image, kernel, padding=pad)[0, 0]


def headers():
    shapes = [(5, 8, "column"), (6, 5, "row"), (7, 7, "row")]
    for letter, (rows, cols, order) in zip(string.ascii_lowercase, shapes):
        yield Header(f"tile-{letter}", rows, cols, order)


prepare = pipe(to_metres, fill)
surface_fast = torch.compile(surface, backend="eager")


def survey(items):
    table = {}
    for number, header in enumerate(items):
        tile = prepare(synthetic(header, number))
        shade, density, lines, reach = surface_fast(tile)
        counts = zones(smooth(shade, settings["kernel"]), 4)
        table[header.name] = dict(lines=lines, reach=reach, density=float(density), zones=counts.tolist())
        expected = header.cols if header.order == "column" else header.rows
        if lines != expected:
            table[header.name]["odd"] = f"{lines} lines for {expected}"
    return table


def report(table):
    for name, row in sorted(table.items(), key=op.itemgetter(0)):
        with suppress(KeyError):
            print(name, row["odd"])
            continue
        print(name, row["lines"], row["zones"])
    total = sum(row["reach"] for row in table.values())
    print("cells:", total)


if __name__ == "__main__":
    report(survey(headers()))
