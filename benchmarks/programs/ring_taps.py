# torch: 2.8.0
# Interleaved stereo -> per-channel pre-emphasis -> overlapping frames.
#
# The channels are strided views of the interleaved buffer; the analysis frames
# are cut with explicit strides, as in the numpy prototype this was ported from.
import torch

CHANNELS = 2


class Interleaved:
    def __init__(self, seconds, rate):
        n = int(seconds * rate)
        t = torch.arange(n, dtype=torch.float32) / rate
        self.rate = rate
        self.data = torch.empty(n * CHANNELS)
        self.data[0::CHANNELS] = torch.sin(2 * torch.pi * 5 * t)
        self.data[1::CHANNELS] = 3.0 * torch.cos(2 * torch.pi * 11 * t)

    def channel(self, c):
        return self.data[c::CHANNELS]

    def __len__(self):
        return self.data.numel() // CHANNELS


def n_frames(length, frame, hop):
    return 1 + (length - frame) // hop


@torch.compile(backend="aot_eager")
def frames_of(channel, gain, frame, hop, count):
    """Scales the channel in place (the buffer is played back later) and
    returns a copy of its overlapping frames."""
    channel.mul_(gain)
    step = channel.stride(0)
    return torch.as_strided_copy(channel, (count, frame), (hop * step, step))


def overlap_add(frames, hop, length):
    out = torch.zeros(length)
    hits = torch.zeros(length)
    for i, row in enumerate(frames):
        out[i * hop : i * hop + row.numel()] += row
        hits[i * hop : i * hop + row.numel()] += 1
    return out / hits.clamp(min=1)


def loudness(frames):
    return frames.pow(2).mean(1).sqrt()


def process(audio, gains, frame=16, hop=8, count=None):
    results = {}
    for c, gain in enumerate(gains):
        channel = audio.channel(c)
        frames = frames_of(channel, gain, frame, hop, count)
        results[c] = {
            "frames": frames,
            "peak": channel.abs().max().item(),
            "rms": loudness(frames),
        }
    return results


def main():
    audio = Interleaved(seconds=1.0, rate=128)
    # analyse the first part only; the tail is still being recorded
    count = n_frames(len(audio) // 2, 16, 8)
    results = process(audio, gains=(0.5, 2.0), count=count)
    for c, res in results.items():
        covered = 8 * (count - 1) + 16
        rebuilt = overlap_add(res["frames"], 8, covered)
        error = (rebuilt - audio.channel(c)[:covered]).abs().max().item()
        print(f"channel {c}: peak {res['peak']:.2f} rms {res['rms'].mean():.3f} error {error:.2e}")
        assert error < 1e-5, f"channel {c} cannot be rebuilt from its frames"


if __name__ == "__main__":
    main()
