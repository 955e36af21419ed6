# torch: 2.13.0
from collections import deque

import torch
from torch import nn


class GridWorld:
    moves = {0: (0, 1), 1: (1, 0), 2: (0, -1), 3: (-1, 0)}

    def __init__(self, size=6, goal=(4, 4)):
        self.size = size
        self.goal = goal
        self.position = (0, 0)
        self.steps = 0

    def reset(self):
        self.position = (0, 0)
        self.steps = 0
        return self.observe()

    def observe(self):
        frame = torch.zeros(self.size, self.size)
        frame[self.position] = 1.0
        frame[self.goal] = -1.0
        return frame

    def step(self, action):
        dy, dx = self.moves[action]
        y = min(max(self.position[0] + dy, 0), self.size - 1)
        x = min(max(self.position[1] + dx, 0), self.size - 1)
        self.position = (y, x)
        self.steps += 1
        done = self.position == self.goal
        reward = 1.0 if done else -0.01
        return self.observe(), reward, done


class FrameHistory:
    def __init__(self, depth, size):
        self.depth = depth
        self.frames = deque([torch.zeros(size, size)] * depth, maxlen=depth)

    def push(self, *frames):
        self.frames.extendleft(frames)

    def weights(self, decay):
        return [decay**i for i in range(len(self.frames))]


class Encoder(nn.Module):
    def __init__(self, depth, size, decay=0.5):
        super().__init__()
        self.history = FrameHistory(depth, size)
        self.decay = decay
        self.seen = 0

    def forward(self, frame):
        self.history.push(frame)
        self.seen += 1
        mixed = torch.zeros_like(frame)
        norm = 0.0
        for weight, past in zip(self.history.weights(self.decay), self.history.frames):
            mixed = mixed + weight * past
            norm += weight
        return mixed / norm


class Policy(nn.Module):
    def __init__(self, depth=3, size=6):
        super().__init__()
        self.encoder = Encoder(depth, size)
        self.head = nn.Linear(size * size, 4)
        with torch.no_grad():
            weight = torch.arange(4 * size * size).reshape(4, -1).float()
            self.head.weight.copy_((weight * 0.37).sin())
            self.head.bias.zero_()

    def forward(self, frame):
        code = self.encoder(frame)
        return self.head(code.reshape(1, -1)).squeeze(0), code


def rollout(env, policy, actions):
    codes = []
    returns = 0.0
    frame = env.reset()
    for action in actions:
        logits, code = policy(frame)
        assert logits.shape == (4,)
        codes.append(code)
        frame, reward, done = env.step(action)
        returns += reward
        if done:
            break
    return codes, returns


def expected_codes(env, actions, depth, decay):
    frames = [torch.zeros(env.size, env.size)] * depth
    frame = env.reset()
    for action in actions:
        frames = ([frame] + frames)[:depth]
        total = sum(decay**i * f for i, f in enumerate(frames))
        yield total / sum(decay**i for i in range(depth))
        frame, _, done = env.step(action)
        if done:
            break


def main():
    env = GridWorld()
    policy = Policy()
    compiled = torch.compile(policy, backend="eager")
    actions = [0, 1, 0, 1, 2, 0, 1]
    with torch.no_grad():
        codes, returns = rollout(env, compiled, actions)
    expected = list(expected_codes(env, actions, 3, 0.5))
    assert len(codes) == len(expected) == policy.encoder.seen
    for step, (code, want) in enumerate(zip(codes, expected)):
        torch.testing.assert_close(code, want, msg=lambda m: f"step {step}: {m}")
    print("return", returns)


if __name__ == "__main__":
    main()
