"""What cannot be recorded is refused by name, and leaves neither a file nor anything in the model."""

import unittest

import torch
from torch import nn

from attndiff_capture import CaptureError, plain_attention, record
from attndiff_capture.plain_attention import PlainModel
from support import MICRO, InFolder, inputs, run


class Refusals(InFolder):
    def assert_refused(self, words: str, model=None, calls=None, start=0, **kwargs):
        model = model or PlainModel()
        with self.assertRaises(CaptureError) as caught:
            with record(model, out=self.file, **kwargs):
                run(model, inputs(21, 2, "cpu") if calls is None else calls, start)
        self.assertIn(words, str(caught.exception))
        self.assert_untouched(model)

    def assert_untouched(self, model, files=()):
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), sorted(files))
        self.assertEqual(plain_attention.sparse_attn.__module__, "attndiff_capture.plain_attention")
        for module in model.modules():
            self.assertFalse(module._forward_hooks or module._forward_pre_hooks)

    def test_names_the_attribute_that_another_model_lacks(self):
        for path in ("wkv", "attn_sink", "compressor.norm", "indexer.k_norm", "indexer.index_topk", "compress_ratio",
                     "window_size", "freqs_cis", "compressor.wgate"):  # fmt: skip
            with self.subTest(path=path):
                model = PlainModel()
                *owners, name = path.split(".")
                module = model.layers[1].attn
                for owner in owners:
                    module = getattr(module, owner)
                setattr(module, name, None)
                self.assert_refused(f"has no {path!r}" if not owners else f"has no '{path}", model)

    def test_names_the_state_that_is_not_there(self):
        model = PlainModel()
        calls = inputs(21, 2, "cpu")
        run(model, calls[:1])
        model.layers[1].attn.window_kv_cache = None
        self.assert_refused("has no 'window_kv_cache'", model, calls[1:], start=21)

    def test_a_model_without_such_attention(self):
        class Other(nn.Module):
            def __init__(self):
                super().__init__()
                self.attn = nn.Module()
                self.attn.wq_a = nn.Linear(2, 2)

        with self.assertRaisesRegex(CaptureError, "attn .Module. lacks q_norm, wq_b, wkv, kv_norm, attn_sink, wo_a, wo_b"):
            record(Other(), out=self.file)
        with self.assertRaisesRegex(CaptureError, "each of its modules lacks wq_a"):
            record(nn.Linear(2, 2), out=self.file)

    def test_a_rank_of_a_tensor_parallel_run(self):
        model = PlainModel()
        model.layers[4].attn.n_local_heads = 3
        self.assert_refused("layer 4 is a rank of a tensor-parallel run (n_local_heads 3, n_heads 6)", model)
        model = PlainModel()
        model.layers[1].attn.indexer.n_local_heads = 1
        self.assert_refused("holds 1 of 3 index heads", model)

    def test_layers_that_do_not_exist(self):
        self.assert_refused("no attention layer 20 (it has 0 to 5)", layers=[3, 20])
        self.assert_refused("no layer was chosen", layers=[])

    def test_weights_the_format_does_not_hold(self):
        model = PlainModel()
        model.layers[0].attn.wq_a.weight.data = torch.full((MICRO.q_lora_rank, MICRO.dim), 1 / 3)
        self.assert_refused("wq_a.weight is float32 with values that bfloat16 does not hold", model)
        model = PlainModel()
        model.layers[0].attn.wo_a.quantise()
        self.assert_refused("wo_a.weight is float8_e4m3fn", model)
        model = PlainModel()
        model.layers[0].attn.wq_a.weight.data = model.layers[0].attn.wq_a.weight.half()
        self.assert_refused("wq_a.weight is torch.float16", model)

    def test_float32_weights_that_bf16_holds(self):
        model = PlainModel()
        weight = model.layers[0].attn.wq_a.weight
        weight.data = weight.float()
        with record(model, layers=[0], out=self.file):
            run(model, inputs(21, 2, "cpu"))
        self.assert_passes()

    def test_scales_of_another_form(self):
        model = PlainModel(e4m3=True)
        module = model.layers[0].attn.wq_b
        module.weight.scale = nn.Parameter(module.scale.data.float(), requires_grad=False)
        self.assert_refused("wq_b.scale is torch.float32 [18, 2]; expected float8_e8m0fnu [18, 2]", model)

    def test_runs_the_format_does_not_hold(self):
        calls = inputs(21, 2, "cpu")
        self.assert_refused("sequence 1 of a batch of 1", sequence=1)
        self.assert_refused("nothing was recorded", calls=[])
        model = PlainModel()
        run(model, calls)
        self.assert_refused("21 tokens after the first call", model, calls[:1], start=23)
        for position, words in ((0, "a second sequence begins"), (22, "expected position 21")):
            with self.assertRaisesRegex(CaptureError, words):
                with record(model, out=self.file):
                    model(calls[0], 0)
                    model(calls[1], position)
            self.assert_untouched(model)

    def test_layers_out_of_order(self):
        model = PlainModel()
        x = inputs(21, 0, "cpu")[0]
        with self.assertRaisesRegex(CaptureError, "layer 2 at position 0 with 21 tokens: expected layer 0"):
            with record(model, layers=[0, 2], out=self.file), torch.inference_mode():
                model.layers[2].attn(x, 0)
        with self.assertRaisesRegex(CaptureError, "layer 2 did not run at position 0, where layer 0 did"):
            with record(model, layers=[0, 2], out=self.file), torch.inference_mode():
                model.layers[0].attn(x, 0)
        self.assert_untouched(model)

    def test_another_call(self):
        model = PlainModel()
        x = inputs(21, 0, "cpu")[0]
        with self.assertRaisesRegex(CaptureError, r"called with \(positional, positional, positional\)"):
            with record(model, layers=[0], out=self.file):
                model.layers[0].attn(x, 0, None)
        with record(model, layers=[0], out=self.file), torch.inference_mode():
            model.layers[0].attn(x=x, start_pos=0)
        self.assert_passes()

    def test_a_module_without_sparse_attn_or_slots(self):
        held = plain_attention.sparse_attn
        self.addCleanup(setattr, plain_attention, "sparse_attn", held)
        del plain_attention.sparse_attn
        with self.assertRaisesRegex(CaptureError, "has no 'sparse_attn'"):
            with record(PlainModel(), out=self.file):
                pass
        plain_attention.sparse_attn = held
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_failing_model_leaves_no_file_and_keeps_an_older_one(self):
        model = PlainModel()
        calls = inputs(21, 2, "cpu")
        for before in ((), ("capture.h5",)):
            for name in before:
                (self.folder / name).write_text("older")
            with self.assertRaisesRegex(ZeroDivisionError, "the model's own"):
                with record(model, out=self.file):
                    run(model, calls[:2])
                    raise ZeroDivisionError("the model's own")
            self.assert_untouched(model, before)
        self.assertEqual(self.file.read_text(), "older")

    def test_a_layer_that_fails_inside_and_is_called_again(self):
        model = PlainModel()
        x = inputs(21, 0, "cpu")[0]
        with self.assertRaisesRegex(CaptureError, "the call of layer 0 before it did not finish"):
            with record(model, layers=[0], out=self.file), torch.inference_mode():
                try:
                    model.layers[0].attn(x[..., : MICRO.dim - 1], 0)
                except RuntimeError:
                    pass
                model.layers[0].attn(x, 0)
        self.assert_untouched(model)

    def test_a_folder_that_is_not_there(self):
        with self.assertRaises(FileNotFoundError):
            with record(PlainModel(), out=self.folder / "none" / "x.h5"):
                pass


if __name__ == "__main__":
    unittest.main()
