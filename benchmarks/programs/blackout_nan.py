# torch: 2.13.0
"""Modality dropout curriculum.

Each modality has its own dropout rate that is annealed from 1 (modality hidden
at first) to its final rate.  Corrupt inputs must never pass silently, whatever
the current rate is: a batch whose fused features are not finite is skipped and
its source file is reported.
"""
from collections import defaultdict
from typing import NamedTuple

import torch
from torch import nn


class Batch(NamedTuple):
    source: str
    audio: torch.Tensor
    video: torch.Tensor
    label: torch.Tensor


class Anneal:
    def __init__(self, first, last, steps):
        self.first, self.last, self.steps = first, last, steps

    def at(self, step):
        frac = min(step / self.steps, 1.0)
        return self.first + (self.last - self.first) * frac


class Fusion(nn.Module):
    def __init__(self, n_audio, n_video, n_classes):
        super().__init__()
        self.drop_audio = nn.Dropout(0.0)
        self.drop_video = nn.Dropout(1.0)
        self.head = nn.Linear(n_audio + n_video, n_classes)

    def forward(self, audio, video):
        fused = torch.cat([self.drop_audio(audio), self.drop_video(video)], dim=-1)
        return self.head(fused), fused.isfinite().all()


def corpus(n_batches):
    for k in range(n_batches):
        audio = torch.randn(8, 3)
        video = torch.randn(8, 5)
        label = (audio.sum(-1) > 0).long()
        if k == 1:
            video[4, 2] = float("nan")  # truncated clip
        yield Batch(f"shard-{k:02d}.tar", audio, video, label)


class Trainer:
    def __init__(self, model, schedule):
        self.model = model
        self.schedule = schedule
        self.step_fn = torch.compile(model, backend="aot_eager_decomp_partition")
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1)
        self.rejected = defaultdict(list)
        self.losses = []

    def run(self, batches, epochs):
        for epoch in range(epochs):
            self.model.drop_video.p = self.schedule.at(epoch)
            for batch in batches:
                self.step(epoch, batch)

    def step(self, epoch, batch):
        logits, healthy = self.step_fn(batch.audio, batch.video)
        if not healthy.item():
            self.rejected[batch.source].append(epoch)
            return
        loss = nn.functional.cross_entropy(logits, batch.label)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.losses.append(loss.item())


def main():
    torch.manual_seed(21)
    trainer = Trainer(Fusion(3, 5, 2), Anneal(first=1.0, last=0.0, steps=1))
    trainer.run(list(corpus(3)), epochs=2)
    print("loss %.3f -> %.3f" % (trainer.losses[0], trainer.losses[-1]))
    print("rejected", dict(trainer.rejected))
    assert dict(trainer.rejected) == {"shard-01.tar": [0, 1]}, "corrupt shard slipped through"


if __name__ == "__main__":
    main()
