"""What the tests share: a stand-in model's run, and the attndiff program."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import torch

from attndiff_capture import plain_attention

# The stand-in is tiny: threads cost it more than they give.
torch.set_num_threads(1)

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
MICRO = plain_attention.Geometry()


def attndiff(*arguments) -> subprocess.CompletedProcess:
    """Runs the program that ATTNDIFF_BINARY names."""
    program = os.environ.get("ATTNDIFF_BINARY")
    if not program:
        raise RuntimeError("ATTNDIFF_BINARY has to name the attndiff program")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


def inputs(prefill: int, decode: int, device: str, batch: int = 1, seed: int = 5) -> list:
    """bf16 [batch, tokens, dim] for each call."""
    source = torch.Generator().manual_seed(seed)
    sizes = ([prefill] if prefill else []) + [1] * decode
    return [torch.randn(batch, n, MICRO.dim, generator=source).to(torch.bfloat16).to(device) for n in sizes]


def run(model, calls: list, start_pos: int = 0) -> list:
    results = []
    for h in calls:
        results.append(model(h, start_pos))
        start_pos += h.shape[1]
    return results


class InFolder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.file = self.folder / "capture.h5"

    def assert_passes(self, file=None):
        """The file is a valid fixture, and the reference agrees with what was recorded."""
        file = file or self.file
        for arguments in (("validate", file), ("replay", "--reference", "cpu", "--candidate", "recorded", file)):
            done = attndiff(*arguments)
            self.assertEqual(done.returncode, 0, f"{arguments}\n{done.stdout}\n{done.stderr}")

    def first_failure(self, file=None) -> str:
        """Replays a file that has to fail; the stage of its first failing comparison."""
        report = self.folder / "report.json"
        done = attndiff("replay", "--reference", "cpu", "--candidate", "recorded", "--json", report, file or self.file)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        comparisons = json.loads(report.read_text())["fixtures"][0]["comparisons"]
        return next(c["stage"] for c in comparisons if c["verdict"] not in ("pass", "explained", "tie", "unobserved"))
