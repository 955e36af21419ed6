"""Planar robot arm: gradient based inverse kinematics with pose tuples."""
import collections
import functools
import math

import torch

Pose = collections.namedtuple("Pose", ["x", "y", "heading"])
Link = collections.namedtuple("Link", ["length", "limit"])


def registry():
    table = {}

    def register(name):
        def deco(fn):
            table[name] = fn
            return fn
        return deco

    return table, register


COSTS, register = registry()


@register("position")
def position_cost(pose, goal):
    return (pose.x - goal.x) ** 2 + (pose.y - goal.y) ** 2


@register("heading")
def heading_cost(pose, goal):
    return 1.0 - torch.cos(pose.heading - goal.heading)


@register("reach")
def reach_cost(pose, goal):
    return torch.relu(-pose.x) + 0.0 * goal.x


def base_pose(like):
    zero = torch.zeros_like(like)
    return Pose(zero, zero, zero)


def advance(pose, angle, link):
    heading = pose.heading + angle
    return Pose(
        pose.x + link.length * torch.cos(heading),
        pose.y + link.length * torch.sin(heading),
        heading,
    )


def forward_kinematics(angles, links):
    pose = base_pose(angles[0])
    trail = [pose]
    for angle, link in zip(angles.unbind(), links):
        pose = advance(pose, angle.clamp(-link.limit, link.limit), link)
        trail.append(pose)
    return trail


def features(pose, extra):
    """The pose twice: once as it is, and once seen from behind (mirrored)."""
    doubled = pose * 2
    signs = (1.0, 1.0, 1.0, -1.0, 1.0, -1.0)
    row = [value * sign for value, sign in zip(doubled, signs)]
    return torch.stack(row + list(extra))


def objective(angles, links, goal, weights):
    trail = forward_kinematics(angles, links)
    tip = trail[-1]
    costs = [weights[k] * COSTS[k](tip, goal) for k in sorted(weights)]
    row = features(tip, costs)
    return row[6:].sum(), row


def solve(links, goal, weights, steps=25, lr=0.1):
    angles = torch.full((len(links),), 0.2, requires_grad=True)
    fn = functools.partial(objective, links=links, goal=goal, weights=weights)
    fn = torch.compile(fn, backend="eager")
    for _ in range(steps):
        loss, row = fn(angles)
        (grad,) = torch.autograd.grad(loss, angles)
        with torch.no_grad():
            angles -= lr * grad
    return loss.item(), row.detach()


if __name__ == "__main__":
    arm = [Link(1.0, math.pi), Link(0.7, 2.0), Link(0.4, 1.5)]
    target = Pose(*map(torch.tensor, (1.2, 0.8, 0.5)))
    loss, row = solve(arm, target, {"position": 1.0, "heading": 0.3, "reach": 0.1})
    print(f"loss {loss:.4f}")
    print("tip", [round(v, 3) for v in row[:3].tolist()])
