#!/usr/bin/env python3
"""lyo and PyTorch on one GPU, in one go: tests/bench/gpu_vs_torch.py PATH_TO_LYO

Needs PyTorch with CUDA. Each model is exported, compiled by lyo for this GPU, and run by lyo (`lyo bench`) and by PyTorch:
eager, torch.compile, torch.compile with CUDA graphs. Prints microseconds a call and the ratio of PyTorch's best to lyo's.
Numbers are medians; `pipelined` enqueues calls back to back, `waited` synchronises after each.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch

LYO = os.path.abspath(sys.argv[1])
DEVICE = "cuda:0"
ARCH = "cuda:sm_%d%d" % torch.cuda.get_device_capability(0)
torch.backends.cuda.matmul.allow_tf32 = False


class Mlp(torch.nn.Module):
    def __init__(self, i, h, o, dtype):
        super().__init__()
        self.a, self.b = torch.nn.Linear(i, h, dtype=dtype), torch.nn.Linear(h, o, dtype=dtype)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


class Function(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *x):
        return self.f(*x)


def chain(a, b):
    return torch.nn.functional.gelu(a * b + a).sigmoid() * b - a


def models():
    f32, bf16 = torch.float32, torch.bfloat16
    yield "seed mlp 2x2-4-8 f32", Mlp(2, 4, 8, f32), (torch.randn(2, 2),)
    yield "mlp 1x256-1024-256 f32", Mlp(256, 1024, 256, f32), (torch.randn(1, 256),)
    yield "mlp 1x256-1024-256 bf16", Mlp(256, 1024, 256, bf16), (torch.randn(1, 256, dtype=bf16),)
    yield "mlp 64x1024-4096-1024 f32", Mlp(1024, 4096, 1024, f32), (torch.randn(64, 1024),)
    yield "mlp 64x1024-4096-1024 bf16", Mlp(1024, 4096, 1024, bf16), (torch.randn(64, 1024, dtype=bf16),)
    yield "mlp 4096x4096-16384-4096 bf16", Mlp(4096, 16384, 4096, bf16), (torch.randn(4096, 4096, dtype=bf16),)
    yield "chain 64x1024x1024 f32", Function(chain), (torch.randn(64, 1024, 1024), torch.randn(64, 1024, 1024))
    yield "softmax 8192x8192 f32", Function(lambda x: torch.softmax(x, -1)), (torch.randn(8192, 8192),)
    yield "layer norm 8192x8192 f32", torch.nn.LayerNorm(8192), (torch.randn(8192, 8192),)
    yield "sum over rows 8192x8192 f32", Function(lambda x: x.sum(-1)), (torch.randn(8192, 8192),)
    yield "sum over columns 8192x8192 f32", Function(lambda x: x.sum(0)), (torch.randn(8192, 8192),)


def measure(call, seconds=0.3):
    """Microseconds a call: pipelined, waited."""
    for _ in range(5):
        call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    once = max(time.perf_counter() - start, 1e-6)
    batch = max(1, min(200, int(2e-2 / once)))
    pipelined, waited = [], []
    end = time.perf_counter() + seconds
    while len(pipelined) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(batch):
            call()
        torch.cuda.synchronize()
        pipelined.append((time.perf_counter() - start) / batch)
        start = time.perf_counter()
        for _ in range(batch):
            call()
            torch.cuda.synchronize()
        waited.append((time.perf_counter() - start) / batch)
    return statistics.median(pipelined) * 1e6, statistics.median(waited) * 1e6


def lyo_times(name, model, inputs, folder):
    path, artifact = os.path.join(folder, "m.pt2"), os.path.join(folder, "m.lyo")
    torch.export.save(torch.export.export(model, inputs), path)
    start = time.perf_counter()
    subprocess.run([LYO, "compile", path, "-o", artifact, "--target", ARCH], check=True, stdout=subprocess.DEVNULL)
    took = time.perf_counter() - start
    report = json.loads(subprocess.run([LYO, "bench", artifact, "--device", DEVICE, "--seconds", "0.3", "--json"], check=True,
                                       capture_output=True, text=True).stdout)
    times = {t["name"]: t["median"] / 1e3 for t in report["times_ns"]}
    return times["call"], times["call and wait"], times["call into given outputs"], took


def main():
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}; microseconds a call, pipelined / waited")
    copy_from, copy_to = torch.empty(1 << 28, device=DEVICE), torch.empty(1 << 28, device=DEVICE)
    copy_us, _ = measure(lambda: copy_to.copy_(copy_from))
    rate = 2 * copy_from.numel() * 4 / copy_us / 1e6
    del copy_from, copy_to
    print(f"device copy: {rate:.2f} TB/s read and written")
    print(f"{'model':32} {'lyo':>16} {'lyo into':>9} {'eager':>16} {'compiled':>16} {'cuda graphs':>16} {'best/lyo':>13} {'of copy':>8} {'compile s':>9}")
    with torch.no_grad():
        for name, model, inputs in models():
            model = model.eval()
            with tempfile.TemporaryDirectory() as folder:
                pipelined, waited, into, took = lyo_times(name, model, inputs, folder)
            there = tuple(x.to(DEVICE) for x in inputs)
            model = model.to(DEVICE)
            rows = [measure(lambda: model(*there))]
            for mode in (None, "reduce-overhead"):
                torch._dynamo.reset()
                compiled = torch.compile(model, mode=mode)
                rows.append(measure(lambda: compiled(*there)))
            out = model(*there)
            bytes_moved = sum(x.numel() * x.element_size() for x in (*there, out))
            floor = bytes_moved / (rate * 1e6)
            best = [min(r[i] for r in rows) for i in (0, 1)]
            cells = " ".join(f"{f'{a:.1f} / {b:.1f}':>16}" for a, b in rows)
            share = f"{floor / pipelined:.0%}" if "mlp" not in name else ""
            print(f"{name:32} {f'{pipelined:.1f} / {waited:.1f}':>16} {into:9.1f} {cells} {f'{best[0] / pipelined:.2f} / {best[1] / waited:.2f}':>13} {share:>8} {took:9.2f}",
                  flush=True)


if __name__ == "__main__":
    main()
