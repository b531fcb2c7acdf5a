"""Files that Python programs write, imported and replayed; and the commands of docs/capture.md, as they stand there."""

import json
import os
import re
import subprocess
import sys
import unittest
from dataclasses import asdict
from pathlib import Path

import h5py
import numpy as np
import torch
from safetensors.torch import save_file

from attndiff_capture import record
from attndiff_capture.fixture_file import read_tensor
from attndiff_capture.plain_attention import PlainModel
from support import MICRO, InFolder, attndiff, inputs, run

PAGE = Path(os.environ.get("ATTNDIFF_DOCS", Path(__file__).resolve().parents[3] / "docs")) / "capture.md"


class Import(InFolder):
    def setUp(self):
        super().setUp()
        self.model = PlainModel(e4m3=True)
        with record(self.model, out=self.file):
            run(self.model, inputs(21, 3, "cpu"))
        weights = {k: v.contiguous() for k, v in self.model.state_dict().items() if ".attn." in k}
        names = sorted(weights)
        shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
        for shard, members in shards.items():
            save_file({name: weights[name] for name in members}, self.folder / shard)
        index = {"weight_map": {name: shard for shard, members in shards.items() for name in members}}
        (self.folder / "index.json").write_text(json.dumps(index))
        (self.folder / "config.json").write_text(json.dumps(asdict(MICRO)))

    def captured(self) -> dict:
        """What was recorded, by the names that an import knows."""
        arrays = {}
        with h5py.File(self.file) as file:
            for k, step in enumerate(file["steps"].values()):
                for n, call in enumerate(step["layers"].values()):
                    name = f"steps.{k}.layers.{n}"
                    arrays[f"{name}.x"] = read_tensor(call["x"])
                    expected = call["expected"]
                    for stage in ("q", "o", "idx", "out"):
                        arrays[f"{name}.expected.{stage}"] = read_tensor(expected[stage])
                    for stage, value in expected["stages"].items():
                        arrays[f"{name}.expected.{stage}"] = read_tensor(value)
        return arrays

    def imported(self, activations, *more):
        return attndiff("import", "--config", self.folder / "config.json", "--weights", self.folder / "index.json",
                        "--layers", "0,1,2,3,4,5", "--activations", activations, "-o", self.folder / "imported.h5",
                        *more)  # fmt: skip

    def test_recorded_results_survive_the_way_through_other_formats(self):
        save_file({k: v.contiguous() for k, v in self.captured().items()}, self.folder / "acts.safetensors")
        floats = {k: v.float().numpy() if v.dtype == torch.bfloat16 else v.numpy() for k, v in self.captured().items()}
        np.savez(self.folder / "acts.npz", **floats)
        np.savez_compressed(self.folder / "small.npz", **floats)
        made = []
        for name in ("acts.safetensors", "acts.npz", "small.npz"):
            done = self.imported(self.folder / name)
            self.assertEqual(done.returncode, 0, done.stderr)
            made.append((self.folder / "imported.h5").read_bytes())
        self.assertEqual(len(set(made)), 1)
        self.assert_passes(self.folder / "imported.h5")
        with h5py.File(self.folder / "imported.h5") as ours, h5py.File(self.file) as theirs:
            found = []
            theirs["layers"].visititems(
                lambda path, item: (
                    found.append(np.array_equal(item, ours["layers"][path], equal_nan=False))
                    if isinstance(item, h5py.Dataset)
                    else None
                )
            )
        self.assertGreater(len(found), 60)
        self.assertTrue(all(found), "weights are those of the running model")

    def test_pickles_are_not_read(self):
        torch.save(self.captured(), self.folder / "acts.pt")
        np.savez(self.folder / "acts.npz", **{"steps.0.layers.0.x": np.array([{"a": 1}], dtype=object)})
        for name in ("acts.pt", "acts.npz"):
            done = self.imported(self.folder / name)
            self.assertEqual(done.returncode, 2)
            self.assertIn("pickle", done.stderr)
            self.assertFalse((self.folder / "imported.h5").exists())


class Documentation(InFolder):
    def test_the_page_does_what_it_says(self):
        program = Path(os.environ["ATTNDIFF_BINARY"]).resolve()
        (self.folder / "attndiff").symlink_to(program)
        package = Path(__file__).resolve().parents[1]
        environment = os.environ | {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(package),
            "OMP_NUM_THREADS": "1",
        }
        blocks = re.findall(r"^```(python|sh)\n(.*?)^```", PAGE.read_text(), re.M | re.S)
        self.assertEqual([language for language, _ in blocks], ["python", "sh"] * 3)
        for language, text in blocks:
            command = [sys.executable, "-c", text] if language == "python" else ["bash", "-euc", text]
            done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout}\n{done.stderr}")


if __name__ == "__main__":
    unittest.main()
