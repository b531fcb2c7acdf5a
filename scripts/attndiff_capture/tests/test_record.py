"""Recording from a running model, on the CPU and on a GPU where there is one; the attndiff program judges the files."""

import gc
import unittest
from unittest import mock

import h5py
import torch

from attndiff_capture import plain_attention, record
from attndiff_capture.fixture_file import read_tensor
from attndiff_capture.plain_attention import PlainModel
from support import DEVICES, MICRO, InFolder, inputs, run


class Recording:
    """The tests, for the device that a class below names."""

    device: str

    def model(self, geometry=MICRO, **kwargs):
        return PlainModel(geometry, **kwargs).to(self.device)

    def record_run(self, model, calls, skip=0, **kwargs):
        """Runs the calls, recording from number `skip` on. Returns the recorder and all results."""
        before = run(model, calls[:skip])
        position = sum(h.shape[1] for h in calls[:skip])
        with record(model, out=self.file, **kwargs) as recorder:
            results = run(model, calls[skip:], position)
        return recorder, before + results

    def assert_same(self, results, others):
        self.assertEqual(len(results), len(others))
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(results, others)))

    def test_a_whole_model_from_the_start(self):
        for e4m3 in (False, True):
            with self.subTest(e4m3=e4m3):
                calls = inputs(21, 8, self.device)
                _, results = self.record_run(self.model(e4m3=e4m3), calls)
                self.assert_same(results, run(self.model(e4m3=e4m3), calls))
                self.assert_passes()
                with h5py.File(self.file) as file:
                    self.assertEqual("wq_a_scale" in file["layers/0000/weights"], e4m3)

    def test_started_at_decode_step_7(self):
        for e4m3 in (False, True):
            with self.subTest(e4m3=e4m3):
                calls = inputs(21, 12, self.device)
                _, results = self.record_run(self.model(e4m3=e4m3), calls, skip=8)
                self.assert_same(results, run(self.model(e4m3=e4m3), calls))
                self.assert_passes()
                with h5py.File(self.file) as file:
                    self.assertEqual(file["steps/0000"].attrs["start_pos"], 28)
                    self.assertEqual(file["initial_state/layers/0001/compress_kv"].shape, (14, MICRO.head_dim))

    def test_chosen_layers_bring_the_slots_of_the_others(self):
        expected = {
            (2,): {"compress_kv", "selection"},
            (4, 5): {"compress_kv", "index_k", "candidates"},
            (1, 4): {"compress_kv", "index_k", "candidates"},
            (0, 3): set(),
        }
        for layers, slots in expected.items():
            for skip in (0, 8):
                with self.subTest(layers=layers, skip=skip):
                    self.record_run(self.model(), inputs(21, 12, self.device), skip=skip, layers=layers)
                    self.assert_passes()
                    found = set()
                    with h5py.File(self.file) as file:
                        for step in file["steps"].values():
                            for call in step["layers"].values():
                                found |= set(call.get("shared_in", ()))
                    self.assertEqual(found, slots)

    def test_one_sequence_of_a_batch(self):
        model = self.model(plain_attention.Geometry(max_batch_size=3))
        calls = inputs(21, 5, self.device, batch=3)
        seen = []
        hook = model.layers[3].attn.register_forward_pre_hook(lambda _module, args: seen.append(args[0][1].cpu()))
        self.record_run(model, calls, sequence=1, skip=2)
        hook.remove()
        self.assert_passes()
        with h5py.File(self.file) as file:
            for step, x in enumerate(seen[2:]):
                self.assertTrue(torch.equal(read_tensor(file[f"steps/{step:04d}/layers/0003/x"]), x))

    def test_rows_left_by_an_earlier_sequence_are_no_part_of_this_one(self):
        model = self.model()
        run(model, inputs(30, 3, self.device, seed=9))
        for skip in (0, 2):
            with self.subTest(skip=skip):
                self.record_run(model, inputs(3, 4, self.device), skip=skip)
                self.assert_passes()

    def test_a_first_call_shorter_than_a_group(self):
        for layers in (None, [1], [2]):
            with self.subTest(layers=layers):
                self.record_run(self.model(), inputs(1, 4, self.device), layers=layers)
                self.assert_passes()

    def test_layers_without_compression(self):
        window_only = plain_attention.Geometry(
            compress_ratios=(0, 0), kv_source_layers=(), index_source_layers=(), candidate_source_layer=-1
        )
        self.record_run(self.model(window_only), inputs(11, 3, self.device))
        self.assert_passes()

    def test_a_model_without_candidates(self):
        plain = plain_attention.Geometry(candidate_source_layer=-1, candidate_topk_blocks=0, candidate_block_size=0)
        self.record_run(self.model(plain), inputs(21, 4, self.device))
        self.assert_passes()

    def test_draft_layers_are_left_out_unless_named(self):
        whole = plain_attention.Geometry(compress_ratios=(0, 2, 2, 1, 1, 1, 0))
        model = self.model(whole)
        model.mtp = torch.nn.ModuleList([model.layers[6]])
        model.layers = model.layers[:6]
        self.record_run(model, inputs(9, 1, self.device))
        self.assert_passes()
        with h5py.File(self.file) as file:
            self.assertEqual(len(file["layers"]), 6)

    def test_no_query_rotation_is_found_at_q(self):
        rotate = plain_attention.rotate

        def forgets_queries(x, turns, inverse=False):
            if x.ndim == 3 or x.shape[2] != MICRO.n_heads or inverse:
                rotate(x, turns, inverse)

        with mock.patch.object(plain_attention, "rotate", forgets_queries):
            self.record_run(self.model(), inputs(21, 4, self.device))
        self.assertEqual(self.first_failure(), "q")

    def test_a_dropped_sink_is_found_at_o(self):
        attend = plain_attention.sparse_attn

        def without_sink(q, kv, sink, idx, scale):
            return attend(q, kv, torch.full_like(sink, -1e30), idx, scale)

        with mock.patch.object(plain_attention, "sparse_attn", without_sink):
            self.record_run(self.model(), inputs(21, 4, self.device), layers=[0])
        self.assertEqual(self.first_failure(), "o")

    def test_a_wrong_selection_is_found(self):
        whole = plain_attention.Indexer.forward

        def takes_another(indexer, *args):
            picks = whole(indexer, *args)
            return torch.where(picks == picks.amax(-1, keepdim=True), picks - 1, picks)

        with mock.patch.object(plain_attention.Indexer, "forward", takes_another):
            self.record_run(self.model(), inputs(21, 4, self.device))
        self.assertEqual(self.first_failure(), "selection")

    def test_an_indexer_that_keeps_no_queries_is_recorded_without_them(self):
        unflatten = torch.Tensor.unflatten
        with mock.patch.object(torch.Tensor, "unflatten", lambda t, *sizes: unflatten(t.clone(), *sizes)):
            self.record_run(self.model(), inputs(21, 4, self.device))
        self.assert_passes()
        with h5py.File(self.file) as file:
            self.assertNotIn("index_q", file["steps/0000/layers/0001/expected/stages"])
            self.assertIn("index queries not recorded", file.attrs["note"])

    def test_equal_runs_give_equal_bytes(self):
        self.record_run(self.model(), inputs(21, 2, self.device), layers=[3])
        first = self.file.read_bytes()
        self.record_run(self.model(), inputs(21, 2, self.device), layers=[3])
        self.assertEqual(self.file.read_bytes(), first)

    def test_no_more_is_copied_than_is_recorded(self):
        recorder, _ = self.record_run(self.model(), inputs(21, 12, self.device))
        with h5py.File(self.file) as file:
            run_bytes = _stored_bytes(file["steps"])
        self.assertGreater(recorder.bytes_copied, 0)
        self.assertLessEqual(recorder.bytes_copied, run_bytes)
        # What is held at once is bounded by a step, however many follow.
        longer, _ = self.record_run(self.model(), inputs(21, 40, self.device))
        self.assertEqual(longer.peak_bytes_held, recorder.peak_bytes_held)
        self.assertGreater(longer.bytes_copied, 2 * recorder.bytes_copied)


def _stored_bytes(group) -> int:
    sizes = []
    group.visititems(lambda _, item: sizes.append(item.id.get_storage_size()) if isinstance(item, h5py.Dataset) else None)
    return sum(sizes)


class OnCpu(Recording, InFolder):
    device = "cpu"


if "cuda" in DEVICES:

    class OnCuda(Recording, InFolder):
        device = "cuda"

        def test_recording_takes_no_device_memory(self):
            def peak(recorded):
                model, calls = self.model(), inputs(60, 4, self.device)
                run(model, calls)
                gc.collect()
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
                if recorded:
                    self.record_run(model, calls)
                else:
                    run(model, calls)
                torch.cuda.synchronize()
                return torch.cuda.max_memory_allocated() - before

            without = peak(recorded=False)
            # Some blocks of the allocator, of 512 bytes each; the prefill alone records a thousand times as much.
            self.assertLessEqual(peak(recorded=True), without + 4096)

        def test_copies_are_made_before_the_buffers_are_reused(self):
            """A long kernel ahead of the copies keeps the stream busy while the host runs on and reuses everything."""
            model, calls = self.model(), inputs(21, 6, self.device)
            busy = torch.randn(4096, 4096, device="cuda")

            def delayed(q, kv, sink, idx, scale, attend=plain_attention.sparse_attn):
                for _ in range(20):
                    torch.mm(busy, busy)
                return attend(q, kv, sink, idx, scale)

            with mock.patch.object(plain_attention, "sparse_attn", delayed):
                self.record_run(model, calls)
            self.assert_passes()


if __name__ == "__main__":
    unittest.main()
