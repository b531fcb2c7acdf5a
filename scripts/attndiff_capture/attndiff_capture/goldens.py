"""Makes the bundled fixtures' results again, from their weights and inputs, with the plain attention.

    python -m attndiff_capture.goldens OUT [--fixtures FOLDER]

Writes OUT/NAME for each FOLDER/NAME.h5 with results of this torch, of the same structure, and prints for each stage how
many elements differ from the recorded ones. Exits 1 where a decision (idx, candidates) differs.
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import h5py
import torch

from . import plain_attention
from .fixture_file import FixtureFile, call_path, layer_path, read_tensor, stage_path, step_path

DECISIONS = ("idx", "candidates")


def geometry_of(config: dict, layers: list) -> plain_attention.Geometry:
    """From a fixture's /config attributes and its layers' attributes. Layer ids are those of the file."""
    ratios = [0] * (max(int(role["layer_id"]) for role in layers) + 1)
    for role in layers:
        ratios[int(role["layer_id"])] = int(role["ratio"])

    def having(flag):
        return tuple(int(role["layer_id"]) for role in layers if role[flag])

    whole = {
        "dim": "dim", "n_heads": "n_heads", "head_dim": "head_dim", "rope_head_dim": "rope_dim",
        "q_lora_rank": "q_rank", "o_lora_rank": "o_rank", "o_groups": "groups", "window_size": "window",
        "candidate_topk_blocks": "cand_topk_blocks", "candidate_block_size": "cand_block",
        "index_n_heads": "index_heads", "index_head_dim": "index_head_dim", "index_topk": "index_topk",
        "original_seq_len": "orig_seq", "max_seq_len": "max_seq",
    }  # fmt: skip
    real = {
        "norm_eps": "eps", "rope_theta": "rope_theta", "compress_rope_theta": "compress_rope_theta",
        "rope_factor": "rope_factor", "beta_fast": "beta_fast", "beta_slow": "beta_slow",
    }  # fmt: skip
    return plain_attention.Geometry(
        **{ours: int(config[theirs]) for ours, theirs in whole.items()},
        **{ours: float(config[theirs]) for ours, theirs in real.items()},
        compress_ratios=tuple(ratios),
        kv_source_layers=having("is_kv_source"),
        index_source_layers=having("is_index_source"),
        candidate_source_layer=next(iter(having("is_candidate_source")), -1),
    )


def weights_of(attn: plain_attention.Attention) -> dict:
    """The layer's modules and parameters by the fixture format's names."""
    found = {"sink": attn.attn_sink}
    for name in ("wq_a", "q_norm", "wq_b", "wkv", "kv_norm", "wo_a", "wo_b"):
        found[name] = getattr(attn, name).weight
    if attn.compressor is not None:
        found |= {"comp_wkv": attn.compressor.wkv.weight, "comp_norm": attn.compressor.norm.weight}
        if attn.compress_ratio > 1:
            found["comp_wgate"] = attn.compressor.wgate.weight
    if attn.indexer is not None:
        found |= {"idx_wq_b": attn.indexer.wq_b.weight, "idx_weights_proj": attn.indexer.weights_proj.weight}
        if attn.is_kv_source:
            found |= {"idx_wk": attn.indexer.wk.weight, "idx_k_norm": attn.indexer.k_norm.weight}
    return found


class Differences:
    """What the new results are beside the recorded ones, by stage."""

    def __init__(self):
        self.elements = defaultdict(int)
        self.differing = defaultdict(int)
        self.worst = defaultdict(float)

    def add(self, stage: str, ours: torch.Tensor, theirs: torch.Tensor) -> None:
        self.elements[stage] += ours.numel()
        self.differing[stage] += int((ours != theirs).sum())
        if not ours.numel() or not ours.dtype.is_floating_point:
            return
        finite = torch.isfinite(theirs)
        gap = (ours.float() - theirs.float())[finite].abs()
        rms = theirs.float()[finite].square().mean().sqrt()
        if gap.numel() and rms > 0:
            self.worst[stage] = max(self.worst[stage], float(gap.max() / rms))

    def print(self, name: str) -> None:
        for stage in self.elements:
            worst = "exact" if stage in DECISIONS else f"{self.worst[stage]:.4f} rms"
            print(f"{name:<28} {stage:<12} {self.elements[stage]:>9} {self.differing[stage]:>7} {worst:>12}")

    def decisions_differ(self) -> bool:
        return any(self.differing[stage] for stage in DECISIONS)


def regenerate(source: Path, target: Path) -> Differences:
    """Runs the plain attention over one fixture and writes another of the same structure."""
    differences = Differences()
    out = FixtureFile(target)
    with h5py.File(source) as golden:
        roles = [dict(golden[layer_path(i)].attrs) for i in range(len(golden["layers"]))]
        geometry = geometry_of(dict(golden["config"].attrs), roles)
        layers = []
        try:
            out.texts(f"torch {torch.__version__} cpu, attndiff_capture.plain_attention", golden.attrs["note"])
            out.attributes("/config", dict(golden["config"].attrs))
            for index, role in enumerate(roles):
                out.attributes(layer_path(index), role)
                layers.append(plain_attention.Attention(int(role["layer_id"]), geometry))
                for name, parameter in weights_of(layers[-1]).items():
                    stored = read_tensor(golden[f"{layer_path(index)}/weights/{name}"])
                    parameter.copy_(stored.reshape(parameter.shape))
                    out.tensor(f"{layer_path(index)}/weights/{name}", stored)
            for step in range(len(golden["steps"])):
                out.attributes(step_path(step), dict(golden[step_path(step)].attrs))
                for index, attn in enumerate(layers):
                    _run_call(golden, out, step, index, attn, differences)
            out.publish()
        finally:
            out.close()
    return differences


def _run_call(golden, out, step: int, index: int, attn, differences: Differences) -> None:
    x = read_tensor(golden[f"{call_path(step, index)}/x"])
    values = {}
    attn.observe = lambda stage, value: values.__setitem__(stage, value[0].clone())
    values["out"] = attn(x[None], int(golden[step_path(step)].attrs["start_pos"]))[0]
    out.tensor(f"{call_path(step, index)}/x", x)
    expected = golden[f"{call_path(step, index)}/expected"]
    recorded = [name for name in expected if name != "stages"] + list(expected.get("stages", ()))
    for stage in recorded:
        path = stage_path(step, index, stage)
        theirs = read_tensor(golden[path])
        out.tensor(path, values[stage])
        ours = values[stage].to(torch.uint8) if stage == "candidates" else values[stage]
        differences.add(stage, ours, theirs)


@torch.inference_mode()
def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m attndiff_capture.goldens", description=__doc__.split("\n\n")[0])
    parser.add_argument("out", type=Path, help="folder for the new files")
    parser.add_argument("--fixtures", type=Path, default=Path("fixtures"), help="folder of the recorded ones (fixtures)")
    options = parser.parse_args(arguments)
    sources = sorted(options.fixtures.glob("*.h5"))
    if not sources:
        print(f"{options.fixtures}: no fixture (*.h5) in this folder", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    differ = False
    print(f"{'fixture':<28} {'stage':<12} {'elements':>9} {'differ':>7} {'at most':>12}")
    for source in sources:
        differences = regenerate(source, options.out / source.name)
        differences.print(source.name)
        differ = differ or differences.decisions_differ()
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
