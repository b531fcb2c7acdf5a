"""Puts libraries that do nothing in the places of the CUDA libraries that this environment's torch is linked against.

torch's CUDA build does not load without them, and calls none on a machine without a GPU. Each stand-in has the functions
that torch's own libraries name, and each of those traps. Needs gcc and objdump.
"""

import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

# By the name that the loader looks for; the prefix is that of functions which carry no version.
LIBRARIES = {
    "libcublas.so.13": "cublas",
    "libcublasLt.so.13": "cublasLt",
    "libcudnn.so.9": "cudnn",
    "libcufft.so.12": "cufft",
    "libcufile.so.0": "cuFile",
    "libcupti.so.13": "cupti",
    "libcurand.so.10": "curand",
    "libcusparse.so.12": "cusparse",
    "libcusparseLt.so.0": "cusparseLt",
    "libnccl.so.2": "nccl",
    "libnvshmem_host.so.3": "nvshmem",
}
VERSIONS = {"NVSHMEM": "libnvshmem_host.so.3"}


def library_of(function: str, version: str) -> str:
    """Where a function comes from, or an empty text for one of other libraries."""
    if version in LIBRARIES:
        return version
    if version in VERSIONS:
        return VERSIONS[version]
    named = [library for library, prefix in LIBRARIES.items() if not version and function.startswith(prefix)]
    return max(named, key=lambda library: len(LIBRARIES[library]), default="")


def undefined_functions(folder: Path) -> dict:
    """library -> version -> names, of everything that torch's libraries take from the ones above."""
    found = {library: defaultdict(set) for library in LIBRARIES}
    for file in folder.glob("lib*.so*"):
        listing = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            _, undefined, rest = line.partition("*UND*")
            fields = rest.split()
            if undefined and fields:
                version = fields[1].strip("()") if len(fields) == 3 else ""
                library = library_of(fields[-1], "" if version == "Base" else version)
                if library:
                    found[library]["" if version == "Base" else version].add(fields[-1])
    return found


def build(library: str, functions: dict, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        source, versions = Path(scratch, "source.c"), Path(scratch, "versions.map")
        names = sorted(set().union(*functions.values()))
        source.write_text("".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in names))
        command = [
            "gcc",
            "-w",
            "-fno-builtin",
            "-shared",
            "-fPIC",
            f"-Wl,-soname,{library}",
            "-o",
            folder / library,
            source,
        ]
        nodes = [f"{v} {{ global: {'; '.join(sorted(n))}; }};\n" for v, n in functions.items() if v]
        if nodes:
            versions.write_text("".join(nodes))
            command.append(f"-Wl,--version-script={versions}")
        subprocess.run(command, check=True)


def main() -> None:
    packages = Path(next(path for path in sys.path if Path(path, "torch", "lib").is_dir()))
    folder = packages / "nvidia" / "cu13" / "lib"
    for library, functions in undefined_functions(packages / "torch" / "lib").items():
        build(library, functions, folder)


if __name__ == "__main__":
    main()
