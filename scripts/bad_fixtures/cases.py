"""What each file is, and what attndiff must say of it."""

from dataclasses import dataclass, field
from typing import Callable, List, Optional


@dataclass
class Case:
    name: str
    make: Callable  # of an open h5py file (form "edit") or of a path (form "whole")
    form: str = "edit"
    start: int = 0  # position of the first step
    object: str = ""  # what the message must name; empty: the file as a whole
    words: List[str] = field(default_factory=list)  # what it must say
    bad: bool = True
    replay: Optional[int] = 2  # exit code of replay; None: any, since values that only `validate` judges are carried through
    open: dict = field(default_factory=dict)  # options of h5py.File


CASES: List[Case] = []


def bad(name, object="", words=(), **more):
    """Registers a damaged file: validate and replay exit with 2."""

    def register(make):
        CASES.append(Case(name, make, object=object, words=list(words), **more))
        return make

    return register


def legal(name, **more):
    """Registers an unusual file that the format allows: validate and replay exit with 0."""

    def register(make):
        CASES.append(Case(name, make, bad=False, replay=0, **more))
        return make

    return register
