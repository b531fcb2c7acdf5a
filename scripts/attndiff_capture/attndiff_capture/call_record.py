"""One layer's call: what is copied when, and how it is written."""

from dataclasses import dataclass, field
from typing import Callable, Optional

import torch

from . import quantisers
from .errors import CaptureError
from .fixture_file import FixtureFile, call_path, stage_path
from .model_shape import Layer
from .slots import groups_completed


# Stages that are seen where a submodule is called.
_MODULE_OF = {"stage/qr": "q_norm", "stage/og": "wo_b"}


@dataclass
class Call:
    """A call of a recorded layer. index: the layer's number in the file."""

    layer: Layer
    index: int
    step: int
    start_pos: int
    tokens: int
    sequence: int
    attended: bool = False
    index_query: Optional[torch.Tensor] = None  # the index query projection's result, which the indexer works on in place
    index_weight: Optional[torch.Tensor] = None  # that of the head weights' projection
    selection_offset: int = field(init=False)

    def __post_init__(self):
        self.selection_offset = self.tokens if self.start_pos == 0 else self.window

    @property
    def window(self) -> int:
        return int(self.layer.get("window_size"))

    @property
    def window_columns(self) -> int:
        return min(self.tokens, self.window) if self.start_pos == 0 else self.window

    @property
    def groups(self) -> slice:
        """Rows of the layer's caches that this call writes."""
        first = self.start_pos // self.layer.ratio
        return slice(first, first + groups_completed(self.layer, self.start_pos, self.tokens))

    def take_state(self, take: Callable) -> None:
        """Copies what an earlier call left behind, before this one runs."""
        b, layer = self.sequence, self.layer
        take("initial/window", layer.get("window_kv_cache")[b])
        if not layer.is_kv_source:
            return
        if layer.ratio > 1:
            take("initial/comp_kv_state", layer.get("compressor.kv_state")[b])
            take("initial/comp_score_state", layer.get("compressor.score_state")[b])
        so_far = self.start_pos // layer.ratio
        take("initial/compress_kv", layer.get("compress_kv_cache")[b, :so_far])
        if layer.is_index_source:
            take("initial/index_k", layer.get("indexer.k_cache")[b, :so_far])

    def take_index_stages(self, take: Callable, shared) -> None:
        """Copies what the indexer made, when it is done."""
        b, layer = self.sequence, self.layer
        if layer.is_kv_source and self.groups.stop > self.groups.start:
            take("stage/index_k", layer.get("indexer.k_cache")[b, self.groups])
        if layer.get("indexer.is_candidate_source"):
            take("stage/candidates", shared.candidates[b])
        if self.index_query is not None and self.index_weight is not None:
            take("index_query", self.index_query[b])
            take("index_weight", self.index_weight[b])
        # The model lets go of them here, too.
        self.index_query = self.index_weight = None


class CallWriter:
    """Writes calls' copies as inputs, expectations and state."""

    def __init__(self, file: FixtureFile, config: dict):
        self._file = file
        self._config = config
        self.index_query_known: Optional[bool] = None

    def write(self, call: Call, values: dict[str, torch.Tensor]) -> None:
        # Copies made in inference mode may be written in place only in it.
        with torch.inference_mode():
            self._write(call, values)

    def _write(self, call: Call, values: dict[str, torch.Tensor]) -> None:
        file = self._file
        self._clear_unwritten_slots(call, values)
        self._check_shapes(call, values)
        path = call_path(call.step, call.index)
        file.tensor(f"{path}/x", values["x"])
        for name, value in values.items():
            kind, _, rest = name.partition("/")
            if kind == "initial" and value.shape[0] > 0:
                file.tensor(f"/initial_state/layers/{call.index:04d}/{rest}", value)
            elif kind == "slot":
                given = _without_offset(value, call.selection_offset) if rest == "selection" else value
                file.tensor(f"{path}/shared_in/{rest}", given)
        for stage in ("q", "idx", "o", "out"):
            file.tensor(stage_path(call.step, call.index, stage), values[stage])
        for stage, value in self._further_stages(call, values).items():
            file.tensor(stage_path(call.step, call.index, stage), value)

    def _further_stages(self, call: Call, values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Stages that are recorded, or are parts of what is."""
        layer, rows = call.layer, values["rows"]
        first = 0 if call.start_pos == 0 else call.start_pos % call.window
        found = {"kv": rows[first : first + call.tokens], "rows": rows}
        found |= {name[6:]: value for name, value in values.items() if name.startswith("stage/")}
        if layer.is_index_source:
            found["selection"] = _without_offset(values["idx"][:, call.window_columns :], call.selection_offset)
            found |= self._index_query_stages(call, values)
        if layer.is_kv_source and call.groups.stop > call.groups.start:
            offset = call.selection_offset
            found["compress_kv"] = rows[offset + call.groups.start : offset + call.groups.stop]
        return found

    def _index_query_stages(self, call: Call, values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        if (call.start_pos + call.tokens) // call.layer.ratio == 0:
            return {}
        heads, width = self._config["index_heads"], self._config["index_head_dim"]
        known = "index_query" in values
        if known:
            q = values["index_query"].reshape(call.tokens, heads, width)
            # Where the indexer rotates and quantises in place, what its projection returned now lies on the fp4 grid.
            known = torch.equal(quantisers.fp4_e8m0(q).to(q.dtype), q)
        if self.index_query_known is None:
            self.index_query_known = known
        if known != self.index_query_known:
            raise CaptureError(f"layer {call.layer.layer_id} keeps its quantised index queries in some calls only")
        if not known:
            return {}
        return {"index_q": q, "index_w": values["index_weight"] * (width**-0.5 * heads**-0.5)}

    def _clear_unwritten_slots(self, call: Call, values: dict[str, torch.Tensor]) -> None:
        """The ring keeps rows of the sequence before until it has filled once; nobody attends them, and a sequence starts
        with zeros."""
        if call.start_pos > 0:
            values["rows"][call.start_pos + 1 : call.window] = 0
        if "initial/window" in values:
            values["initial/window"][call.start_pos :] = 0

    def _check_shapes(self, call: Call, values: dict[str, torch.Tensor]) -> None:
        c, layer = self._config, call.layer
        positions = (call.start_pos + call.tokens) // layer.ratio if layer.ratio else 0
        picks = min(c["index_topk"], positions)
        heads = [call.tokens, c["n_heads"], c["head_dim"]]
        due = {
            "x": [call.tokens, c["dim"]],
            "q": heads,
            "rows": [call.selection_offset + positions, c["head_dim"]],
            "idx": [call.tokens, call.window_columns + picks],
            "o": heads,
            "out": [call.tokens, c["dim"]],
            "stage/qr": [call.tokens, c["q_rank"]],
            "stage/og": [call.tokens, c["groups"] * c["o_rank"]],
        }
        for name, shape in due.items():
            kind = torch.int32 if name == "idx" else torch.bfloat16
            if name not in values:
                raise CaptureError(f"layer {layer.layer_id} at position {call.start_pos}: {_MODULE_OF[name]} was not called")
            if name == "idx" and values[name].dtype == torch.int64:
                values[name] = values[name].int()
            if list(values[name].shape) != shape or values[name].dtype != kind:
                raise CaptureError(
                    f"layer {layer.layer_id} at position {call.start_pos}: {name} is {values[name].dtype} "
                    f"{list(values[name].shape)}, expected {kind} {shape}"
                )


def _without_offset(selection: torch.Tensor, offset: int) -> torch.Tensor:
    return torch.where(selection >= 0, selection - offset, selection).int()
