# torch: 2.13.0
# Delta codec for telemetry: sends wrapped 8 bit differences, the receiver undoes the wrap.
import collections
import io
import struct
import torch

Frame = collections.namedtuple("Frame", "seq base payload")


class Encoder(torch.nn.Module):
    """float samples -> modular int8 residuals"""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def forward(self, samples, base):
        q = torch.round((samples - base) / self.step)
        return q.to(torch.int8)


class Writer:
    HEADER = struct.Struct("<Hfi")

    def __init__(self, stream):
        self.stream = stream
        self.bytes = 0

    def write(self, frame):
        data = bytes(v & 0xFF for v in frame.payload.tolist())
        self.bytes += self.stream.write(self.HEADER.pack(frame.seq, frame.base, len(data)))
        self.bytes += self.stream.write(data)


def read_frames(stream):
    size = Writer.HEADER.size
    while True:
        head = stream.read(size)
        if len(head) < size:
            return
        seq, base, n = Writer.HEADER.unpack(head)
        raw = torch.tensor(list(stream.read(n)), dtype=torch.int32)
        yield Frame(seq, base, raw)


def unwrap(raw):
    """residuals are slow: neighbours differ by less than half the ring"""
    out = [int(raw[0])]
    for v in raw[1:].tolist():
        prev = out[-1]
        d = (v - prev) % 256
        out.append(prev + (d - 256 if d > 127 else d))
    return torch.tensor(out, dtype=torch.float32)


def signal(n, chunk):
    t = torch.arange(n, dtype=torch.float32)
    wave = t * 2.0 + 5.0 * torch.sin(t / 4)
    yield from wave.split(chunk)


class Link:
    def __init__(self, step=0.5):
        self.step = step
        self.encode = torch.compile(Encoder(step))
        self.buf = io.BytesIO()
        self.writer = Writer(self.buf)

    def send(self, chunks):
        for seq, chunk in enumerate(chunks):
            base = float(chunk[0])
            self.writer.write(Frame(seq, base, self.encode(chunk, torch.tensor(base))))

    def receive(self):
        self.buf.seek(0)
        for f in read_frames(self.buf):
            yield f.base + unwrap(f.payload) * self.step


def main():
    link = Link()
    chunks = list(signal(192, 96))
    link.send(chunks)
    for i, (sent, got) in enumerate(zip(chunks, link.receive())):
        err = (sent - got).abs()
        print(f"frame {i}: max error {err.max().item():.2f} bad {int((err > link.step).sum())}")
    print("bytes", link.writer.bytes)


main()
