"""Records a fixture from a running model: `with record(model, layers=[20, 21], out="x.h5"): model(...)`."""

import inspect
import sys
from types import TracebackType
from typing import Any, Iterable, Optional

import torch
from torch import nn

from . import model_shape
from .call_record import Call, CallWriter
from .errors import CaptureError
from .fixture_file import FixtureFile, layer_path, step_path
from .host_copies import HostCopies
from .slots import SlotBook


def record(
    model: nn.Module,
    layers: Optional[Iterable[int]] = None,
    out: str = "capture.h5",
    *,
    sequence: int = 0,
    config: Any = None,
    note: str = "",
) -> "Recorder":
    """A context manager. Every call of the chosen layers inside it is recorded, and `out` appears when it ends without an
    exception; otherwise no file is left.

    layers: layer ids, by default all but draft layers. sequence: which one of a batch. config: the released configuration
    (a mapping, or an object such as its ModelArgs); without it the rotary constants are recovered from the model's tables.
    note: a line for the file. Raises CaptureError for what cannot be recorded.
    """
    return Recorder(model, layers, out, sequence, config, note)


class Recorder:
    """What record() returns. bytes_copied: copies of what the run computed; peak_bytes_held: the most of them in memory at
    once; bytes_recorded: all tensors of the file, weights included."""

    def __init__(self, model, layers, out, sequence, config, note):
        self._all = model_shape.layers_of(model)
        self._chosen = self._choose(layers)
        for layer in self._all.values():
            # Sources too: the slots may hold values of theirs.
            if layer in self._chosen or layer.is_kv_source or layer.is_index_source:
                model_shape.require_attributes(layer)
        for layer in self._chosen:
            model_shape.refuse_parallel(layer)
        self._sequence = sequence
        self._out = out
        self._note = note
        self._recovered = config is None
        self._config = model_shape.config_of(self._chosen, self._all, config)
        self._file: Optional[FixtureFile] = None
        self._hooks: list = []
        self._patched: list[tuple[dict, Any]] = []
        self._steps: list[tuple[int, int]] = []
        self._done_in_step = 0
        self._call: Optional[Call] = None

    @property
    def bytes_copied(self) -> int:
        return self._copies.bytes_copied

    @property
    def peak_bytes_held(self) -> int:
        return self._copies.peak_held

    @property
    def bytes_recorded(self) -> int:
        return self._file.tensor_bytes

    def __enter__(self) -> "Recorder":
        if self._file is not None:
            raise CaptureError("this recorder was used already")
        self._file = FixtureFile(self._out)
        try:
            self._writer = CallWriter(self._file, self._config)
            self._copies = HostCopies(self._writer.write, most_calls=len(self._chosen))
            self._write_weights()
            self._install()
        except BaseException:
            self._remove()
            self._file.close()
            raise
        return self

    def __exit__(self, kind: Optional[type], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._remove()
        try:
            if kind is None:
                self._finish()
        finally:
            self._file.close()

    def _choose(self, layers: Optional[Iterable[int]]) -> list[model_shape.Layer]:
        if layers is None:
            layers = [i for i, layer in self._all.items() if layer.backbone] or self._all
        ids = sorted(set(layers))
        unknown = [i for i in ids if i not in self._all]
        if unknown or not ids:
            have = f"{min(self._all)} to {max(self._all)}"
            raise CaptureError(
                f"the model has no attention layer {unknown[0]} (it has {have})" if unknown else "no layer was chosen"
            )
        return [self._all[i] for i in ids]

    def _write_weights(self) -> None:
        for index, layer in enumerate(self._chosen):
            self._file.attributes(layer_path(index), model_shape.role_of(layer, self._all))
            for name, path in model_shape.weight_paths(layer).items():
                value, scale = model_shape.weight_of(layer, name, path)
                target = f"{layer_path(index)}/weights/{name}"
                if scale is None:
                    self._file.tensor(target, value)
                else:
                    self._file.e4m3(target, value, scale)

    def _install(self) -> None:
        namespaces = {}
        for index, layer in enumerate(self._chosen):
            attn = layer.attn
            namespace = _namespace_of(layer)
            namespaces[id(namespace)] = namespace
            self._hooks.append(attn.register_forward_pre_hook(self._before(layer, index), with_kwargs=True))
            self._hooks.append(attn.register_forward_hook(self._after(layer, namespace)))
            self._hooks.append(attn.q_norm.register_forward_hook(self._made("qr")))
            self._hooks.append(attn.wo_b.register_forward_pre_hook(self._given("og")))
            if layer.is_kv_source:
                self._hooks.append(attn.compressor.register_forward_hook(self._made("latent")))
            if layer.is_index_source:
                indexer = layer.get("indexer")
                self._hooks.append(indexer.wq_b.register_forward_hook(self._remember("index_query")))
                self._hooks.append(indexer.weights_proj.register_forward_hook(self._remember("index_weight")))
                self._hooks.append(indexer.register_forward_hook(self._indexed(namespace)))
        # The layers of one model share one shared_attn.
        shared = next((n["shared_attn"] for n in namespaces.values() if "shared_attn" in n), None)
        self._slots = SlotBook(self._all, [layer.layer_id for layer in self._chosen], shared)
        for namespace in namespaces.values():
            original = namespace["sparse_attn"]
            self._patched.append((namespace, original))
            namespace["sparse_attn"] = self._watched(original)

    def _remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        for namespace, original in self._patched:
            namespace["sparse_attn"] = original
        self._hooks, self._patched = [], []

    def _before(self, layer: model_shape.Layer, index: int):
        def hook(_module, args, kwargs):
            x, start_pos = _arguments(layer, args, kwargs)
            self._begin_call(layer, index, x, start_pos)
            call = self._call
            take = self._copies.take
            take("x", x[self._sequence])
            if call.step == 0 and start_pos > 0:
                call.take_state(take)
            for slot, value in self._slots.missing(layer, call.step, start_pos, call.tokens).items():
                take(f"slot/{slot}", value[self._sequence])

        return hook

    def _begin_call(self, layer: model_shape.Layer, index: int, x: torch.Tensor, start_pos: int) -> None:
        where = f"layer {layer.layer_id} at position {start_pos}"
        if self._call is not None:
            raise CaptureError(f"{where}: the call of layer {self._call.layer.layer_id} before it did not finish")
        if x.ndim != 3:
            raise CaptureError(f"{where}: x has shape {list(x.shape)}, expected [batch, tokens, dim]")
        if not 0 <= self._sequence < x.shape[0]:
            raise CaptureError(f"{where}: sequence {self._sequence} of a batch of {x.shape[0]}")
        if x.is_cuda and torch.cuda.is_current_stream_capturing():
            raise CaptureError(f"{where}: a CUDA graph is being captured; record without graphs")
        tokens = x.shape[1]
        if index == 0:
            self._begin_step(where, start_pos, tokens)
        due = self._chosen[self._done_in_step] if self._done_in_step < len(self._chosen) else self._chosen[0]
        if not self._steps or due is not layer or self._steps[-1] != (start_pos, tokens):
            raise CaptureError(
                f"{where} with {tokens} tokens: expected layer {due.layer_id}"
                + (f" at position {self._steps[-1][0]} with {self._steps[-1][1]}" if self._steps and index else "")
                + "; the recorded layers must run in order, each once a step"
            )
        self._call = Call(layer, index, len(self._steps) - 1, start_pos, tokens, self._sequence)

    def _begin_step(self, where: str, start_pos: int, tokens: int) -> None:
        if self._steps:
            self._require_whole_step()
            before = sum(self._steps[-1])
            if start_pos != before:
                what = "a second sequence begins" if start_pos == 0 else f"expected position {before}"
                raise CaptureError(f"{where}: {what}; a file holds one sequence, without gaps")
        if start_pos > 0 and tokens != 1:
            raise CaptureError(f"{where}: {tokens} tokens after the first call; the format has decode calls of one token")
        if not self._steps:
            if start_pos > 0:
                self._file.attributes("/initial_state", self._slots.resume())
            else:
                self._slots.begin_sequence()
        self._file.attributes(step_path(len(self._steps)), {"start_pos": start_pos, "tokens": tokens})
        self._steps.append((start_pos, tokens))
        self._done_in_step = 0

    def _watched(self, original):
        """sparse_attn as the model calls it, with its arguments and result copied in calls of a recorded layer."""
        signature = ("q", "kv", "attn_sink", "topk_idxs", "softmax_scale")

        def sparse_attn(*args, **kwargs):
            call = self._call
            if call is None:
                return original(*args, **kwargs)
            given = dict(zip(signature, args)) | kwargs
            for name in ("q", "kv", "topk_idxs"):
                if name not in given:
                    raise CaptureError(f"layer {call.layer.layer_id} calls sparse_attn without {name!r}")
            if call.attended:
                raise CaptureError(f"layer {call.layer.layer_id} calls sparse_attn twice")
            take, b = self._copies.take, call.sequence
            take("q", given["q"][b])
            take("rows", given["kv"][b])
            take("idx", given["topk_idxs"][b])
            o = original(*args, **kwargs)
            # The model rotates this very tensor back.
            take("o", o[b])
            call.attended = True
            return o

        return sparse_attn

    def _made(self, stage: str):
        """A stage that a submodule returns, copied before the model goes on to change it."""

        def hook(_module, _args, output):
            if self._call is not None and output is not None:
                self._copies.take(f"stage/{stage}", output[self._sequence])

        return hook

    def _given(self, stage: str):
        """A stage that a submodule is called with."""

        def hook(_module, args):
            if self._call is not None:
                self._copies.take(f"stage/{stage}", args[0][self._sequence])

        return hook

    def _remember(self, field: str):
        def hook(_module, _args, output):
            if self._call is not None:
                setattr(self._call, field, output)

        return hook

    def _indexed(self, namespace: dict):
        def hook(_module, _args, _output):
            if self._call is not None:
                self._call.take_index_stages(self._copies.take, namespace.get("shared_attn"))

        return hook

    def _after(self, layer: model_shape.Layer, namespace: dict):
        def hook(_module, _args, output):
            call = self._call
            if call is None or not call.attended:
                raise CaptureError(f"layer {layer.layer_id} did not call sparse_attn of {namespace.get('__name__')}")
            self._copies.take("out", output[self._sequence])
            self._slots.ran(layer, call.step, call.start_pos, call.tokens)
            self._call = None
            self._done_in_step += 1
            self._copies.end_call(output.device, call)

        return hook

    def _require_whole_step(self) -> None:
        if self._done_in_step != len(self._chosen):
            start_pos, _ = self._steps[-1]
            late = self._chosen[self._done_in_step].layer_id
            raise CaptureError(
                f"layer {late} did not run at position {start_pos}, where layer {self._chosen[0].layer_id} did"
            )

    def _finish(self) -> None:
        if not self._steps:
            ids = ", ".join(str(layer.layer_id) for layer in self._chosen)
            raise CaptureError(f"nothing was recorded: no call of layer {ids} was seen")
        self._require_whole_step()
        self._copies.finish()
        self._config["max_tokens"] = max(tokens for _, tokens in self._steps)
        self._file.attributes("/config", self._config)
        self._file.texts(f"torch {torch.__version__} {self._device()}, attndiff_capture", self._notes())
        self._file.publish()

    def _device(self) -> str:
        device = self._chosen[0].get("wq_a.weight").device
        return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type

    def _notes(self) -> str:
        notes = [self._note] if self._note else []
        if self._recovered:
            notes.append("rotary constants recovered from the model's tables")
        if self._writer.index_query_known is False:
            notes.append("index queries not recorded: the indexer does not keep them")
        return "; ".join(notes)


def _arguments(layer: model_shape.Layer, args: tuple, kwargs: dict) -> tuple[torch.Tensor, int]:
    given = dict(zip(("x", "start_pos"), args)) | kwargs
    if len(args) > 2 or set(given) != {"x", "start_pos"}:
        found = [*("positional",) * len(args), *kwargs]
        raise CaptureError(f"layer {layer.layer_id} is called with ({', '.join(found)}); expected attn(x, start_pos)")
    return given["x"], int(given["start_pos"])


def _namespace_of(layer: model_shape.Layer) -> dict:
    """The globals of the module that defines the attention class, where its forward finds sparse_attn."""
    forward = inspect.unwrap(type(layer.attn).forward)
    namespace = getattr(forward, "__globals__", vars(sys.modules[type(layer.attn).__module__]))
    if "sparse_attn" not in namespace:
        raise CaptureError(
            f"layer {layer.layer_id}: the module {namespace.get('__name__')} that defines {type(layer.attn).__name__} "
            "has no 'sparse_attn'"
        )
    return namespace
