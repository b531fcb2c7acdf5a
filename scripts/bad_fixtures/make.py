#!/usr/bin/env python3
"""Writes every file of the corpus into a folder, with h5py alone, and a table of what each must give.

    make.py FOLDER
"""

import sys
from pathlib import Path

import h5py

import base
import damage  # noqa: F401  registers its cases
import forms  # noqa: F401
from cases import CASES


def make(case, path):
    if case.form == "whole":
        case.make(path)
        return
    with h5py.File(path, "w", **case.open) as f:
        base.write(f, case.start)
        case.make(f)


def make_all(folder):
    """Yields each case with its file."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        path = folder / f"{case.name}.h5"
        make(case, path)
        yield case, path


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for case, path in make_all(Path(sys.argv[1])):
        print(path.name, 2 if case.bad else 0, case.object, *case.words, sep="\t")


if __name__ == "__main__":
    main()
