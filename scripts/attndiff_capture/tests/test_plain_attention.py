"""The plain attention beside what the released code gave, and the constants that are read off a model's tables."""

import contextlib
import io
import os
import unittest
from pathlib import Path

import torch

from attndiff_capture import CaptureError, goldens, quantisers
from attndiff_capture.plain_attention import rotary_frequencies, rotary_table
from attndiff_capture.rotary_constants import constants_of
from support import InFolder

FIXTURES = Path(os.environ.get("ATTNDIFF_FIXTURES", Path(__file__).resolve().parents[3] / "fixtures"))
YARN = {"compress_rope_theta": 160000.0, "rope_factor": 16.0, "orig_seq": 65536, "beta_fast": 32.0, "beta_slow": 1.0}


class Goldens(InFolder):
    def test_made_again_they_hold_the_same_decisions_and_pass(self):
        source = self.folder / "from"
        source.mkdir()
        for name in ("tiny-prefill-decode.h5", "tiny-short-prefill.h5"):
            (source / name).symlink_to(FIXTURES / name)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(goldens.main([str(self.folder / "to"), "--fixtures", str(source)]), 0)
        for line in printed.getvalue().splitlines()[1:]:
            _, stage, elements, differing, *_ = line.split()
            self.assertLessEqual(
                int(differing), 0 if stage in ("idx", "candidates", "kv", "rows") else int(elements) / 1000, line
            )
        for made in sorted((self.folder / "to").iterdir()):
            self.assert_passes(made)

    def test_a_folder_without_fixtures(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(goldens.main([str(self.folder / "to"), "--fixtures", str(self.folder)]), 2)


class Quantisers(unittest.TestCase):
    # The examples of docs/numerics.md.
    def test_a_block(self):
        block = torch.zeros(32)
        block[0], block[1] = 2.75, 1.296875
        for round_trip, kept in ((quantisers.fp8, 1.25), (quantisers.fp4_e8m0, 1.5), (quantisers.fp4_e4m3, 1.40625)):
            self.assertEqual(float(round_trip(block)[1]), kept)

    def test_middles_go_to_the_even_code(self):
        middles = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -0.25])
        self.assertEqual(quantisers.to_e2m1(middles).tolist(), [0, 1, 1, 2, 2, 4, 4, 0])
        self.assertTrue(torch.signbit(quantisers.to_e2m1(middles))[-1])

    def test_powers_of_two(self):
        v = torch.tensor([1.0, 1.0000001, 0.75, 448.0, 2.0**-126])
        self.assertEqual(quantisers.pow2ceil(v).tolist(), [1, 2, 1, 512, 2.0**-126])

    def test_weights(self):
        w = torch.randn(70, 40)
        again = quantisers.dequantise_weight(*quantisers.quantise_weight(w))
        self.assertEqual(again.shape, w.shape)
        self.assertLess(float((again - w).abs().max() / w.abs().max()), 2**-4)


class RotaryConstants(unittest.TestCase):
    def table(self, theta, rope_dim=64, **yarn):
        return rotary_table(64, rotary_frequencies(rope_dim, theta, *yarn.values()))

    def test_read_off_the_tables(self):
        cases = [
            (64, YARN),
            (32, {**YARN, "orig_seq": 64}),
            (16, {**YARN, "compress_rope_theta": 40000.0, "rope_factor": 40.0, "orig_seq": 64}),
            (64, {**YARN, "compress_rope_theta": 500000.0, "rope_factor": 4.0, "orig_seq": 4096}),
            (64, {**YARN, "rope_factor": 1.0, "orig_seq": 0}),
        ]
        for rope_dim, made_from in cases:
            with self.subTest(rope_dim=rope_dim, made_from=made_from):
                yarn = (made_from[k] for k in ("orig_seq", "rope_factor", "beta_fast", "beta_slow"))
                f = rotary_frequencies(rope_dim, made_from["compress_rope_theta"], *yarn)
                found = constants_of(self.table(10000.0, rope_dim), rotary_table(64, f), None)
                self.assertEqual(found["rope_theta"], 10000.0)
                self.assertEqual(found["compress_rope_theta"], made_from["compress_rope_theta"])
                again = (found[k] for k in ("orig_seq", "rope_factor", "beta_fast", "beta_slow"))
                self.assertTrue(torch.equal(rotary_frequencies(rope_dim, found["compress_rope_theta"], *again), f))

    def test_given_ones_are_checked(self):
        given = {"rope_theta": 10000, "compress_rope_theta": 160000, "rope_factor": 16, "original_seq_len": 65536,
                 "beta_fast": 32, "beta_slow": 1}  # fmt: skip
        compress = rotary_table(64, rotary_frequencies(64, 160000.0, 65536, 16.0, 32.0, 1.0))
        self.assertEqual(constants_of(self.table(10000.0), compress, given)["rope_factor"], 16.0)
        with self.assertRaisesRegex(CaptureError, "does not come from .*rope_factor 15"):
            constants_of(None, compress, {**given, "rope_factor": 15})
        with self.assertRaisesRegex(CaptureError, "has no 'beta_slow'"):
            constants_of(None, compress, {k: v for k, v in given.items() if k != "beta_slow"})

    def test_tables_of_another_kind(self):
        f = torch.linspace(1, 0.001, 32)
        with self.assertRaisesRegex(CaptureError, "cannot be read off freqs_cis; pass config="):
            constants_of(None, rotary_table(64, f), None)


if __name__ == "__main__":
    unittest.main()
