"""What a model's attention modules are, by the released code's attribute names."""

import re
from dataclasses import dataclass
from typing import Any, Optional

import torch
from torch import nn

from .errors import CaptureError
from .rotary_constants import constants_of

MARKS = ("wq_a", "q_norm", "wq_b", "wkv", "kv_norm", "attn_sink", "wo_a", "wo_b")
MAY_BE_E4M3 = ("wq_a", "wq_b", "wkv", "wo_b", "idx_wq_b")


@dataclass(frozen=True)
class Layer:
    """An attention module with its place in the model. backbone: it is in a list called `layers`; the released model
    keeps its draft layers in another one, and a forward pass does not run them."""

    layer_id: int
    attn: nn.Module
    ratio: int
    is_kv_source: bool
    is_index_source: bool
    backbone: bool = True

    def get(self, path: str) -> Any:
        """The attribute at a dotted path; its absence is an error that names it."""
        value = self.attn
        for name in path.split("."):
            value = getattr(value, name, None)
            if value is None:
                raise CaptureError(
                    f"layer {self.layer_id} ({type(self.attn).__name__}) has no {path!r}, which the released attention has"
                )
        return value

    @property
    def indexes_own_keys(self) -> bool:
        return self.is_kv_source and self.is_index_source


def layers_of(model: nn.Module) -> dict[int, Layer]:
    """Every attention module of the model by layer id."""
    found: dict[int, Layer] = {}
    nearest: tuple[int, str, nn.Module] = (0, "", model)
    for name, module in model.named_modules():
        marks = sum(getattr(module, mark, None) is not None for mark in MARKS)
        nearest = max(nearest, (marks, name, module), key=lambda entry: entry[0])
        # Half of the names tell an attention module whose other half is missing from an unrelated one.
        if 2 * marks < len(MARKS):
            continue
        layer = _layer(name, module, len(found))
        for mark in MARKS:
            layer.get(mark)
        if layer.layer_id in found:
            raise CaptureError(f"two attention modules have layer_id {layer.layer_id}; the second is {name!r}")
        found[layer.layer_id] = layer
    if not found:
        marks, name, module = nearest
        missing = ", ".join(mark for mark in MARKS if getattr(module, mark, None) is None)
        where = f"{name or 'the model itself'} ({type(module).__name__})" if marks else "each of its modules"
        raise CaptureError(f"no attention module of the released shape in this model: {where} lacks {missing}")
    return dict(sorted(found.items()))


def _layer(name: str, module: nn.Module, count: int) -> Layer:
    number = re.search(r"(?:^|\.)layers\.(\d+)(?:\.|$)", name)
    layer_id = getattr(module, "layer_id", int(number.group(1)) if number else count)
    draft = Layer(int(layer_id), module, 0, False, False)
    return Layer(
        int(layer_id),
        module,
        int(draft.get("compress_ratio")),
        getattr(module, "compressor", None) is not None,
        getattr(module, "indexer", None) is not None,
        number is not None,
    )


def require_attributes(layer: Layer) -> None:
    """Everything that recording reads from a layer is there."""
    for path in ("window_size", "window_kv_cache", "freqs_cis", "q_norm.eps", *weight_paths(layer).values()):
        layer.get(path)
    if layer.is_kv_source:
        layer.get("compress_kv_cache")
        if layer.ratio > 1:
            layer.get("compressor.kv_state")
            layer.get("compressor.score_state")
    if layer.is_index_source:
        for name in (
            "index_topk",
            "is_candidate_source",
            "uses_candidates",
            "candidate_topk_blocks",
            "candidate_block_size",
        ):
            layer.get(f"indexer.{name}")
        if layer.is_kv_source:
            layer.get("indexer.k_cache")


def refuse_parallel(layer: Layer) -> None:
    """A rank of a tensor-parallel run holds some heads only, and sums with the others': nothing here is a whole layer."""
    for owner, local, whole, what in (
        ("", "n_local_heads", "n_heads", "heads"),
        ("", "n_local_groups", "n_groups", "output groups"),
        ("indexer.", "n_local_heads", "n_heads", "index heads"),
    ):
        module = layer.attn if not owner else getattr(layer.attn, "indexer", None)
        here, there = getattr(module, local, None), getattr(module, whole, None)
        if here is not None and there is not None and here != there:
            raise CaptureError(
                f"layer {layer.layer_id} is a rank of a tensor-parallel run ({owner}{local} {here}, {owner}{whole} {there}): "
                f"it holds {here} of {there} {what}, and its results depend on the other ranks. Record with one rank."
            )


def role_of(layer: Layer, all_layers: dict[int, Layer]) -> dict:
    """The attributes of /layers/NNNN."""
    source = candidate_source(all_layers)
    return {
        "layer_id": layer.layer_id,
        "ratio": layer.ratio,
        "is_kv_source": layer.is_kv_source,
        "is_index_source": layer.is_index_source,
        "is_candidate_source": layer.layer_id == source,
        "uses_candidates": layer.ratio > 0 and source is not None and layer.layer_id > source,
    }


def candidate_source(all_layers: dict[int, Layer]) -> Optional[int]:
    for layer in all_layers.values():
        if layer.is_index_source and layer.get("indexer.is_candidate_source"):
            return layer.layer_id
    return None


def config_of(chosen: list[Layer], all_layers: dict[int, Layer], config: Any) -> dict:
    """The attributes of /config but max_tokens, which the run decides."""
    layer = chosen[0]
    q_rank, dim = layer.get("wq_a.weight").shape
    head_dim = layer.get("wkv.weight").shape[0]
    n_heads = layer.get("attn_sink").numel()
    wo_a_rows, group_width = layer.get("wo_a.weight").shape
    groups = n_heads * head_dim // group_width
    found = {
        "dim": dim,
        "n_heads": n_heads,
        "head_dim": head_dim,
        "rope_dim": 2 * layer.get("freqs_cis").shape[-1],
        "q_rank": q_rank,
        "o_rank": wo_a_rows // groups,
        "groups": groups,
        "window": int(layer.get("window_size")),
        "max_seq": layer.get("freqs_cis").shape[0],
        "eps": float(layer.get("q_norm.eps")),
    }
    found |= _index_config(all_layers)
    found |= constants_of(_table(all_layers, False), _table(all_layers, True), config)
    return {name: float(v) if name in _REALS else int(v) for name, v in found.items()} | {
        "family": "deepseek-v41",
        "index_keys": "slot",
    }


_REALS = ("eps", "rope_theta", "compress_rope_theta", "rope_factor", "beta_fast", "beta_slow")


def _table(all_layers: dict[int, Layer], compressed: bool) -> Optional[torch.Tensor]:
    return next((layer.get("freqs_cis") for layer in all_layers.values() if (layer.ratio > 0) == compressed), None)


def _index_config(all_layers: dict[int, Layer]) -> dict:
    names = ("index_heads", "index_head_dim", "index_topk", "cand_topk_blocks", "cand_block")
    source = next((layer for layer in all_layers.values() if layer.is_index_source), None)
    if source is None:
        return dict.fromkeys(names, 0)
    heads = source.get("indexer.weights_proj.weight").shape[0]
    has_candidates = candidate_source(all_layers) is not None
    return {
        "index_heads": heads,
        "index_head_dim": source.get("indexer.wq_b.weight").shape[0] // heads,
        "index_topk": source.get("indexer.index_topk"),
        "cand_topk_blocks": source.get("indexer.candidate_topk_blocks") if has_candidates else 0,
        "cand_block": source.get("indexer.candidate_block_size") if has_candidates else 0,
    }


def weight_paths(layer: Layer) -> dict[str, str]:
    """Where each weight of the fixture format is, as a dotted path below the attention module."""
    paths = {"sink": "attn_sink"}
    paths |= {name: f"{name}.weight" for name in ("wq_a", "q_norm", "wq_b", "wkv", "kv_norm", "wo_a", "wo_b")}
    if layer.is_kv_source:
        paths |= {"comp_wkv": "compressor.wkv.weight", "comp_norm": "compressor.norm.weight"}
        if layer.ratio > 1:
            paths["comp_wgate"] = "compressor.wgate.weight"
    if layer.is_index_source:
        paths |= {"idx_wq_b": "indexer.wq_b.weight", "idx_weights_proj": "indexer.weights_proj.weight"}
        if layer.is_kv_source:
            paths |= {"idx_wk": "indexer.wk.weight", "idx_k_norm": "indexer.k_norm.weight"}
    return paths


def float32_weights(layer: Layer) -> set[str]:
    """Weights that the format holds as float32; the others are bf16 or e4m3."""
    names = {"sink", "q_norm", "kv_norm", "comp_norm", "idx_k_norm"}
    return names | {"comp_wkv", "comp_wgate"} if layer.ratio > 1 else names


def weight_of(layer: Layer, name: str, path: str) -> tuple[torch.Tensor, Optional[torch.Tensor]]:
    """A weight on the host in the format's type; with e4m3 codes, their scales too."""
    value = layer.get(path).detach().cpu()
    where = f"layer {layer.layer_id}: {path}"
    if value.dtype == torch.float8_e4m3fn:
        if name not in MAY_BE_E4M3:
            raise CaptureError(f"{where} is float8_e4m3fn; the format holds only {', '.join(MAY_BE_E4M3)} so")
        return value, _scale_of(layer, path, value)
    if value.dtype not in (torch.bfloat16, torch.float32):
        raise CaptureError(f"{where} is {value.dtype}; expected bfloat16, float32 or float8_e4m3fn")
    if name in float32_weights(layer):
        return value.float(), None
    rounded = value.to(torch.bfloat16)
    if not torch.equal(rounded.to(value.dtype), value):
        raise CaptureError(f"{where} is float32 with values that bfloat16 does not hold")
    return rounded, None


def _scale_of(layer: Layer, path: str, codes: torch.Tensor) -> torch.Tensor:
    module = path.rsplit(".", 1)[0]
    scale = getattr(layer.get(path), "scale", None)
    scale = layer.get(f"{module}.scale") if scale is None else scale
    expected = tuple(-(-extent // 32) for extent in codes.shape)
    if scale.dtype != torch.float8_e8m0fnu or tuple(scale.shape) != expected:
        raise CaptureError(
            f"layer {layer.layer_id}: {module}.scale is {scale.dtype} {list(scale.shape)}; "
            f"expected float8_e8m0fnu {list(expected)}, one for each 32 x 32 block"
        )
    return scale.detach().cpu()
