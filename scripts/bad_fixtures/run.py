#!/usr/bin/env python3
"""Holds attndiff against files that h5py wrote: each legal one passes, each damaged one is refused by file and object,
none is written to, and the good file beside it is judged all the same.

    run.py ATTNDIFF [NAME...]      NAME: only these cases
"""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77

try:
    import h5py
except ImportError as missing:
    print(f"h5py is missing ({missing}): install python3-h5py", file=sys.stderr)
    sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)

import base
from make import make_all


class Wrong(Exception):
    pass


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def require(held, what, output):
    if not held:
        raise Wrong(f"{what}\n{output}")


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_validate(attndiff, case, path, good):
    code, output = run(attndiff, "validate", path, good)
    require(code == (2 if case.bad else 0), f"validate exits with {code}", output)
    require(f"{good}: ok" in output, "the good file beside it was not judged", output)
    about = [line for line in output.splitlines() if line.startswith(f"{path}: ")]
    if case.bad:
        named = [line for line in about if line.startswith(f"{path}: {case.object}".rstrip())]
        require(named, f"no line names {case.object or 'the file'}", output)
        for word in case.words:
            require(word in output, f"'{word}' is not said", output)
    else:
        require(about == [f"{path}: ok"], "a legal file is not ok", output)


def check_replay(attndiff, case, path, good):
    code, output = run(attndiff, "replay", "--candidate", "cpu", path, good)
    allowed = range(5) if case.replay is None else [case.replay]
    require(code in allowed, f"replay exits with {code}", output)
    require(re.search(rf"^{re.escape(str(good))} .* pass ", output, re.MULTILINE), "the good file was not judged", output)
    if case.replay == 2:
        require(str(path) in output, "replay does not name the file", output)


def check_case(attndiff, case, path, good):
    before = digest(path)
    check_validate(attndiff, case, path, good)
    check_replay(attndiff, case, path, good)
    require(digest(path) == before, "the file was written to", "")


def check_numbers_are_shown(attndiff, folder):
    """h5py and h5dump show the bf16 tensors that attndiff writes as numbers."""
    made, recorded = folder / "made.h5", folder / "recorded.h5"
    code, output = run(attndiff, "generate", "--preset", "micro", "-o", made)
    require(code == 0, f"generate exits with {code}", output)
    code, output = run(attndiff, "record", made, "-o", recorded)
    require(code == 0, f"record exits with {code}", output)
    name = "/steps/0001/layers/0000/expected/out"
    with h5py.File(recorded, "r") as f:
        values = f[name][0, :4]
    require(values.dtype.kind == "f" and any(values != 0), "h5py reads no numbers", str(values))
    code, output = run("h5dump", "-d", name, "-s", "0,0", "-c", "1,4", recorded)
    require(code == 0, f"h5dump exits with {code}", output)
    shown = re.search(r"\(0,0\): (.*)", output)
    require(shown, "h5dump shows no data", output)
    numbers = [float(number) for number in shown.group(1).split(",")]
    close = all(abs(a - b) <= 1e-5 * abs(b) for a, b in zip(numbers, values))
    require(len(numbers) == 4 and close, f"h5dump shows other numbers than {values}", output)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    attndiff, names = sys.argv[1], set(sys.argv[2:])
    failures = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        good = folder / "good.h5"
        with h5py.File(good, "w") as f:
            base.write(f)
        cases = [(c, p) for c, p in make_all(folder / "cases") if not names or c.name in names]
        checks = [(c.name, lambda c=c, p=p: check_case(attndiff, c, p, good)) for c, p in cases]
        checks.append(("numbers_are_shown", lambda: check_numbers_are_shown(attndiff, folder)))
        for name, check in checks:
            try:
                check()
            except Wrong as wrong:
                failures += 1
                print(f"{name}: {wrong}\n")
        print(f"{len(checks)} checks, {failures} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
