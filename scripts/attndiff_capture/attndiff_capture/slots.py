"""Which slot values a file must bring along.

The released layers hand values on through a module-level `shared_attn`: `compress_kv` and `index_k` (a source's cache),
`topk_idxs` (the selection, offset by the attended window rows) and `candidates`. A replay of the file fills these from the
layers in the file alone. SlotBook follows both, and says for each call which values only the model has.
"""

from dataclasses import dataclass
from typing import Any, Optional

import torch

from .errors import CaptureError
from .model_shape import Layer, candidate_source

CACHES = {"compress_kv": "compress_kv_cache", "index_k": "indexer.k_cache"}


@dataclass(frozen=True)
class _Held:
    """What a replay has in a slot: a layer's own cache, or (step given) something that the next step makes old: a
    selection, a mask, or a copy of a cache's first rows."""

    owner: Optional[int]
    step: Optional[int] = None
    rows: Optional[int] = None

    def serves(self, owner: int, step: int, rows: int) -> bool:
        return self.owner == owner and self.step in (None, step) and (self.rows is None or self.rows >= rows)


class SlotBook:
    """all_layers: every attention module by id; chosen: ids of the recorded ones, ascending; shared: the model's
    `shared_attn`, or None."""

    def __init__(self, all_layers: dict[int, Layer], chosen: list[int], shared: Any):
        self._all = all_layers
        self._chosen = chosen
        self._shared = shared
        self._replayed: dict[str, _Held] = {}

    def begin_sequence(self) -> None:
        self._replayed = {}

    def resume(self) -> dict[str, int]:
        """Recording starts in mid-sequence: the attributes of /initial_state that say whose caches are in the slots."""
        owners = {}
        for slot in CACHES:
            owner = self._cache_owner(slot)
            if owner in self._chosen:
                owners[f"{slot}_owner"] = owner
                self._replayed[slot] = _Held(owner)
        return owners

    def missing(self, layer: Layer, step: int, start_pos: int, tokens: int) -> dict[str, torch.Tensor]:
        """The slot values that this call reads and a replay would not have, each with its batch axis: of a cache the rows
        that the call reads; topk_idxs, still offset, as `selection`."""
        if layer.ratio == 0:
            return {}
        positions = (start_pos + tokens) // layer.ratio
        found = {}
        for slot in self._reads(layer, start_pos, tokens, positions):
            owner = self._cache_owner(slot) if slot in CACHES else self._last_source(slot, layer)
            held = self._replayed.get(slot)
            if owner is not None and held is not None and held.serves(owner, step, positions):
                continue
            value = self._value("topk_idxs" if slot == "selection" else slot, layer)
            found[slot] = value[:, :positions] if slot in CACHES else value
            self._replayed[slot] = _Held(owner, step, positions)
        return found

    def ran(self, layer: Layer, step: int, start_pos: int, tokens: int) -> None:
        """The layer's call is over: what it published is in a replay's slots too."""
        if layer.is_kv_source:
            self._replayed["compress_kv"] = _Held(layer.layer_id)
            if layer.is_index_source and groups_completed(layer, start_pos, tokens) > 0:
                self._replayed["index_k"] = _Held(layer.layer_id)
        if layer.is_index_source:
            self._replayed["selection"] = _Held(layer.layer_id, step)
            if layer.layer_id == candidate_source(self._all):
                self._replayed["candidates"] = _Held(layer.layer_id, step)

    def _reads(self, layer: Layer, start_pos: int, tokens: int, positions: int) -> list[str]:
        slots = []
        if not layer.is_kv_source:
            slots.append("compress_kv")
        if not layer.is_index_source:
            slots.append("selection")
        elif positions > 0:
            if not layer.is_kv_source or groups_completed(layer, start_pos, tokens) == 0:
                slots.append("index_k")
            if layer.get("indexer.uses_candidates"):
                slots.append("candidates")
        return slots

    def _value(self, name: str, layer: Layer) -> torch.Tensor:
        value = getattr(self._shared, name, None)
        if value is None:
            raise CaptureError(
                f"layer {layer.layer_id} reads a value of a layer that is not recorded, and the module that defines "
                f"{type(layer.attn).__name__} has no 'shared_attn.{name}' to take it from"
            )
        return value

    def _cache_owner(self, slot: str) -> Optional[int]:
        held = getattr(self._shared, slot, None)
        if held is None:
            return None
        for layer in self._all.values():
            if layer.is_kv_source and (slot == "compress_kv" or layer.is_index_source):
                if layer.get(CACHES[slot]).data_ptr() == held.data_ptr():
                    return layer.layer_id
        return None

    def _last_source(self, slot: str, layer: Layer) -> Optional[int]:
        if slot == "candidates":
            return candidate_source(self._all)
        earlier = [i for i, other in self._all.items() if other.is_index_source and i < layer.layer_id]
        return max(earlier, default=None)


def groups_completed(layer: Layer, start_pos: int, tokens: int) -> int:
    """Groups of compressed positions that a kv source's call completes."""
    if not layer.is_kv_source:
        return 0
    return (start_pos + tokens) // layer.ratio - start_pos // layer.ratio
