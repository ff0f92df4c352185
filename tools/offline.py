# SPDX-License-Identifier: Apache-2.0
"""Parts shared by the tools that compile kernels offline for Intel's GPUs: the chips, the sources,
the list of builds, samples of it, and a cache of results."""
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import zlib
from collections import namedtuple
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
ROOT = TOOLS.parent
KERNELS = ROOT / "kernels/cl"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xemoe"

# A row of intel_chips.txt. engines: lanes of its matrix engines, 0 without any; eus, mhz and gb_s
# of its card, None if unknown.
Chip = namedtuple("Chip", "name ocloc engines eus mhz gb_s")
CARD = re.compile(r'^CARD\("(\w+)", *"\w+", *"[^"]*", *(\d+), *(\d+), *([\d.]+),', re.M)


def chips():
    """Returns name -> chip for the chips that the current driver knows."""
    found = {}
    cards = {name: [float(f) or None for f in figures]
             for name, *figures in CARD.findall((ROOT / "runtime/cards.def").read_text())}
    for line in (TOOLS / "intel_chips.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, _, current, _, _, ocloc, engines, card, _ = line.split(maxsplit=8)
        if current != "-":
            found[name] = Chip(name, ocloc, int(engines), *cards.get(card, [None] * 3))
    return found


def with_includes(path, seen):
    """Returns the text of a kernel as runtime/kernel_source.c makes it, with each include once."""
    def put(m):
        new = sorted(p for p in (KERNELS / "include").glob(m.group(1)) if p.name not in seen)
        seen.update(p.name for p in new)
        return "".join(with_includes(p, seen) for p in new)
    return re.sub(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)".*$', put, path.read_text(), flags=re.M)


def with_words(defines, words):
    """Returns the options, once for each word that a name in them stands for."""
    name = re.search(r"%(\w+)", defines)
    return [defines.replace(name.group(), w) for w in words[name.group(1)]] if name else [defines]


def listed_builds():
    """Returns the rows of sg_builds.txt: a kernel's name, the only devices or none, build
    options."""
    words = {}
    for line in (KERNELS / "sg_builds.txt").read_text().splitlines():
        names, colon, rest = line.partition(":")
        if not colon or line.startswith("#"):
            continue
        if names.startswith("%"):
            words[names[1:]] = rest.split()
            continue
        only = [name[1:] for name in names.split() if name.startswith("@")]
        for name in names.split():
            if not name.startswith("@"):
                yield from ((name, only, defines) for defines in with_words(rest.strip(), words))


def seed():
    """Returns XM_TEST_SEED, or a number derived from the commit."""
    commit = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], capture_output=True,
                            text=True, cwd=ROOT).stdout
    return int(os.environ.get("XM_TEST_SEED") or str(int(commit or "1", 16)))


# ---- what has changed since a table was written --------------------------------------------

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
CODE_LINE = re.compile(r"^# code (\w+) (\w+)$", re.M)
UNCHANGED_PARTS = 8  # a sample has one in as many builds of kernels that have not changed


@functools.lru_cache(maxsize=None)
def code_digest(kernel):
    """Returns a hash of a kernel's code with its includes, without comments and white space."""
    code = COMMENT.sub(" ", with_includes(KERNELS / f"{kernel}.cl", set()))
    return hashlib.sha256(" ".join(code.split()).encode()).hexdigest()[:12]


def code_lines(kernels):
    """Returns the lines by which a table says of which code its figures are."""
    return "".join(f"# code {k} {code_digest(k)}\n" for k in sorted(set(kernels)))


def changed(kernels, table):
    """Returns those kernels whose code is not that of which the file `table` has figures."""
    known = dict(CODE_LINE.findall(table.read_text() if table.exists() else ""))
    return {k for k in kernels if known.get(k) != code_digest(k)}


def is_in_sample(build, number):
    """Whether a sample has a build, a text, of a kernel that has not changed."""
    return (zlib.crc32(build.encode()) // 7 + number) % UNCHANGED_PARTS == 0


def cached(folder, parts, make):
    """Returns make(), or its earlier result for the same parts. Errors are not stored."""
    path = CACHE / folder / hashlib.sha256("\0".join(parts).encode()).hexdigest()
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        pass
    made = make()
    if "error" not in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_text(json.dumps(made))
        part.replace(path)
    return made


# Macros that compilers define: extensions, versions, instruction sets. All have __has_builtin.
OWN_NAME = re.compile(r"\b(?:cl_|__(?!has_|builtin_))\w+")
CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:.*\\\n)*.*", re.M)
# Macros that conditions compare with a value, and the values they may have.
VALUES = {"__OPENCL_C_VERSION__": (100, 110, 120, 200, 300)}


@functools.lru_cache(maxsize=None)
def own_names():
    """Returns the compilers' macros that conditions in kernels use, in order."""
    texts = (p.read_text() for p in [*KERNELS.glob("*.cl"), *KERNELS.glob("include/*")])
    return sorted({name for text in texts for line in CONDITION.findall(text)
                   for name in OWN_NAME.findall(line)})


def probe(names):
    """Returns a source that makes a compiler print those of the `names` that it defines, and then
    fail."""
    asked = [f"#ifdef {name}\n#warning defined {name}\n#endif\n" for name in names]
    asked += [f"#if {name} == {value}\n#warning defined {name}={value}\n#endif\n"
              for name in names for value in VALUES.get(name, ())]
    return "".join(asked) + "#error the end\n"


def probed(messages):
    """Returns the names and NAME=VALUE that a probe printed; NAME=VALUE comes after the name alone,
    and so takes effect."""
    return sorted(set(re.findall(r"warning: defined ([\w=]+)", messages)))


@functools.lru_cache(maxsize=None)
def preprocessed(source, options, defined):
    """Returns the part of a source that is compiled with these options, by the preprocessor of
    `cc`; the whole source without `cc`."""
    if not shutil.which("cc"):
        return source
    given = [w for w in options.split() if w.startswith("-D")] + [f"-D{n}" for n in defined]
    return subprocess.run(["cc", "-E", "-P", "-undef", "-nostdinc", "-x", "c", *given, "-"],
                          input=source, capture_output=True, text=True, check=True).stdout


def cached_build(folder, of, options, source, defined, make):
    """Returns cached() of a build; `of` names compiler and device. A change in a part of the source
    that this build does not compile compiles nothing. defined() returns the compiler's macros."""
    def of_text():
        text = preprocessed(source, options, tuple(defined()))
        return cached(folder, (*of, "preprocessed", options, text), make)
    return cached(folder, (*of, options, source), of_text)


def current_driver():
    """Returns the folder of Intel's current driver, which tools/intel_driver may fetch; None
    without it."""
    found = subprocess.run([TOOLS / "intel_driver"], stdout=subprocess.PIPE, text=True)
    return Path(found.stdout.strip()) if found.returncode == 0 else None


def current_compiler(folder):
    """Returns the compiler's version, from the packages that it was unpacked from."""
    packages = folder / "packages"
    versions = dict(line.split("_")[:2] for line in packages.read_text().splitlines())
    return f"IGC {versions['libigc2'].split('-')[0]}, driver {versions['intel-ocloc'].split('-')[0]}"


def language(name):
    """Returns the OpenCL C as which xemoe builds kernels for the chip `name` on the current driver:
    runtime/quirks.def."""
    return "CL2.0" if name == "pvc" else "CL3.0"


def compile_current(chip, source, options, dump):
    """Compiles a source for a chip; the compiler leaves its code in `dump`. Returns its messages
    after a failure, else "". Compiles bindful, as the driver does: before xe2 ocloc would not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cl"
        path.write_text(source)
        run = subprocess.run(
            [TOOLS / "dry_run", "--tool", "ocloc", "compile", "-file", path, "-device", chip.ocloc,
             "-out_dir", Path(folder) / "out", "-stateful_address_mode", "bindful",
             "-options", f"-cl-std={language(chip.name)} {options}"], capture_output=True, text=True,
            env=dict(os.environ, IGC_ShaderDumpEnable="1", IGC_DumpToCustomDir=str(dump)))
        return (run.stdout + run.stderr).strip() if run.returncode else ""


def defined_by_current(chip, compiler):
    """Returns those of own_names() that the compiler defines for a chip."""
    def make():
        with tempfile.TemporaryDirectory() as dump:
            return {"names": probed(compile_current(chip, probe(own_names()), "", dump))}
    return cached("defined", (compiler, chip.ocloc, probe(own_names())), make)["names"]


def engine_options(chip, kernel):
    """Returns the options with which primitives/variant.c builds a kernel for a chip's matrix
    engines; for a chip without them, those of the kernel's form with products of four bytes."""
    if not kernel.endswith("_dpas"):
        return ""
    if chip.engines:
        return f"-DSG={chip.engines} -DMATRIX_ENGINE=1"
    return "-DSG=8 -DDP4A=1 -DDOT_PRODUCTS=1"
