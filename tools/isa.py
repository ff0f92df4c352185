# SPDX-License-Identifier: Apache-2.0
"""Reads the dump that Intel's compiler writes of a kernel (IGC_DumpToCustomDir): instructions,
blocks and loops, and the cycles in which one EU issues them.

Cycles are issue slots. `one`: if the EU issued one instruction at a time; `pipes`: of the busiest
pipe, if those of floats, integers and matrices worked in parallel (xe_lp has one pipe for floats
and integers, so `one` is closer there). Waiting for memory is not counted. Bytes are lanes x size,
even if all lanes read the same ones.
"""
import re
from collections import Counter
from pathlib import Path

# Platforms with registers of 64 bytes.
WIDE = ("XE2", "XE3", "XE3P", "XE3P_CRI", "PVC", "PVCXT", "PVCXT_A0", "CRI", "NVLP", "XE3P_NVLP")
SIZES = {"q": 8, "uq": 8, "df": 8, "d": 4, "ud": 4, "f": 4, "w": 2, "uw": 2, "hf": 2, "bf": 2,
         "b": 1, "ub": 1}
FLOATS = ("f", "hf", "bf", "df")
KINDS = {
    "logic": ("and", "or", "xor", "not", "shl", "shr", "asr", "rol", "ror", "bfn", "bfe", "bfi1",
              "bfi2", "bfrev", "lzd", "fbh", "fbl", "cbit"),
    "flow": ("jmpi", "goto", "join", "if", "else", "endif", "while", "break", "cont", "brd", "brc",
             "call", "calla", "ret", "halt"),
    "math": ("math", "rndz", "rnde", "rndd", "rndu", "frc"),
    "sync": ("sync", "nop", "wait"),
    "cmp/sel": ("cmp", "cmpn", "sel", "csel"),
    "mov/cvt": ("mov", "movi", "smov"),
    "dp4a": ("dp4a",),
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}
SENDS = ("load", "store", "send", "atomic", "fence", "lsc")
ALL_KINDS = ("send", "dpas", "dp4a", "mad/mul/add", "int add/mul", "mov/cvt", "logic", "cmp/sel",
             "math", "flow", "sync")

LINE = re.compile(r"^(\([^)]*\))?\s*([a-z][\w.]*(?:\(\S*\))?)\s*\((\d+)\|M\d+\)\s*(.*)$")
PLAIN = re.compile(r"^(?:\([^)]*\))?\s*([a-z][\w.]*)\s*(.*)$")  # without lanes: sync, nop
BLOCK = re.compile(r"^// (B\d+):.*?Preds:\{([^}]*)\},\s*Succs:\{([^}]*)\}")
TYPE = re.compile(r":(u?[qdwb]|df|hf|bf|f)\b")
MESSAGE = re.compile(r"\.d(\d+)(?:[uc]\d+)?(?:x(\d+))?(t)?\b")
NAMED = re.compile(r"(?:load|store)\S*\.(?:ugm|slm|tgm|urb)\S*")  # xe3: name after a plain send
SHAPE = re.compile(r"\.(\d+)x(\d+)x?(\d+)?"), re.compile(r"\b(\d+)x(\d+)x(\d+)\b")
OLD_BLOCKS = (("oword block read x", 16), ("hword block read x", 32))


def block2d_bytes(message, note):
    shape = SHAPE[0].search(message) or SHAPE[1].search(note)
    size = re.search(r"\.d(\d+)", message)
    if not shape or not size:
        return 0
    width, height, count = shape.groups()
    return int(width) * int(height) * int(count or 1) * int(size.group(1)) // 8


def register_bytes(text, wide):
    """Returns the number of bytes of the registers that a message writes."""
    found = re.search(r"\brd:(\d+)", text) or re.search(r"\br\d+:(\d+)", text)
    return int(found.group(1)) * (64 if wide else 32) if found else 0


def old_message_bytes(note, lanes):
    """Returns the bytes of a message on chips before xe_hpg, from the compiler's note about it."""
    for words, size in OLD_BLOCKS:
        m = re.search(words + r"(\d+)", note)
        if m:
            return size * int(m.group(1))
    channels = re.search(r"(?:read|write) with ([xyzw]+)", note)
    bits = re.search(r"(?:gathering|scattered|scattering) (?:read|write) (\d+)b", note)
    if channels:
        return 4 * len(channels.group(1)) * lanes
    if bits:
        return int(bits.group(1)) // 8 * lanes
    return 8 * lanes if "qword" in note else 4 * lanes if "dword" in note else 0


class Instruction:
    """One instruction: op, name (op without its type of message), lanes, kind, pipe, cycles; the
    bytes that it loads and stores, and whether they are in local or in scratch memory."""

    def __init__(self, text, wide):
        m = LINE.match(text)
        if m:
            self.op, self.lanes, rest = m.group(2), int(m.group(3)), m.group(4)
        else:
            m = PLAIN.match(text)
            self.op, self.lanes, rest = m.group(1), 1, m.group(2)
        code, _, note = rest.partition("//")
        self.text = text
        self.name = re.match(r"[a-z0-9]+", self.op).group(0)
        self.types = TYPE.findall(code)
        self.loaded = self.stored = 0
        self.local = False
        self.scratch = bool(re.search(r"\bss\[|scratch", text))
        self.kind = self.find_kind()
        if self.kind == "send":
            self.count_bytes(note, wide)
        self.pipe, self.cycles = self.cost(wide, note)

    def find_kind(self):
        if self.name.startswith(SENDS):
            return "send"
        if self.name.startswith("dpas"):
            return "dpas"
        if self.name in KIND_OF:
            return KIND_OF[self.name]
        first = self.types[0] if self.types else "ud"
        return "mad/mul/add" if first in FLOATS else "int add/mul"

    def count_bytes(self, note, wide):
        named = NAMED.search(note)
        message = named.group(0) if self.name.startswith("send") and named else self.op
        size = MESSAGE.search(message)
        if "block2d" in message:
            n = block2d_bytes(message, note) or register_bytes(self.text, wide)
        elif size:
            n = int(size.group(1)) // 8 * int(size.group(2) or 1) * self.lanes
        else:
            n = old_message_bytes(note, self.lanes)
        self.local = ".slm" in message or "slm" in note
        if message.startswith("store") or "write" in note or "atomic" in note:
            self.stored = n
        elif not re.search(r"end of thread|fence|barrier|gateway", note):
            self.loaded = n

    def cost(self, wide, note):
        """Returns the pipe that executes the instruction, and for how many cycles."""
        native = 64 if wide else 32
        if self.kind == "sync":
            return "none", 0
        if self.kind == "send":
            return "send", 1
        if self.kind == "dpas":
            return "dpas", 2 * int(re.search(r"\.(\d+)x(\d+)", self.op).group(2))
        if self.kind == "math":
            return "int", max(1, self.lanes * 4 // (native // 4))
        size = max([SIZES[t] for t in self.types] or [4])
        # A conversion runs on the pipe of its floating type; newer compilers name the pipe.
        is_float = any(t in FLOATS for t in self.types)
        said = re.search(r"ALU pipe: (int|float|long)", note)
        if said:
            is_float = said.group(1) == "float"
        return ("float" if is_float else "int"), max(1, -(-self.lanes * size // native))


def natural_loops(successors):
    """Returns the loops of a control flow graph, as header -> blocks. `successors` maps a block
    to its successors; the entry is the first block."""
    names = list(successors)
    before = {b: [p for p in names if b in successors[p]] for b in names}
    dominators = {b: set(names) for b in names}
    if names:
        dominators[names[0]] = {names[0]}
    changed = True
    while changed:
        changed = False
        for b in names[1:]:
            sets = [dominators[p] for p in before[b]]
            new = (set.intersection(*sets) if sets else set()) | {b}
            changed |= new != dominators[b]
            dominators[b] = new
    loops = {}
    for tail in names:
        for head in set(successors[tail]) & dominators[tail]:
            body, todo = loops.setdefault(head, {head}), [tail]
            while todo:
                b = todo.pop()
                if b not in body:
                    body.add(b)
                    todo += before[b]
    return loops


class Kernel:
    """A file of the dump."""

    def __init__(self, path):
        text = path.read_text(errors="replace")
        def find(pattern, default):
            m = re.search(pattern, text)
            return m.group(1) if m else default
        self.path = path
        self.name = find(r"//\.kernel (\S+)", path.name)
        self.platform = find(r"//\.platform (\S+)", "?")
        self.registers = int(find(r"numGRF=(\d+)", 0))
        self.spill = int(find(r"//\.spill size (\d+)", 0))
        self.count = int(find(r"//\.instCount (\d+)", 0))
        lanes = re.search(r"simd(\d+)", path.name)
        self.lanes = int(lanes.group(1)) if lanes else int(find(r"simd(\d+)", 0))
        self.wide = self.platform in WIDE or "size=64 type=ud align=32 words (r0.0)" in text
        self.blocks, self.successors = {}, {}
        self.read_blocks(text)
        self.loops = natural_loops(self.successors)
        self.split = self.drop_split_gathers()
        # Scratch memory: spills and private arrays.
        self.scratch = sum(i.scratch for b in self.blocks.values() for i in b)

    def read_blocks(self, text):
        now = None
        for line in map(str.strip, text.splitlines()):
            m = BLOCK.match(line)
            if m:
                now = m.group(1)
                self.blocks[now] = []
                self.successors[now] = [s.strip() for s in m.group(3).split(",") if s.strip()]
            elif now and line and not line.startswith(("//", ".")) and \
                    not re.match(r"^[\w$]+:", line):
                self.blocks[now].append(Instruction(line, self.wide))

    def drop_split_gathers(self):
        """Removes the loops in which xe_lp sends a gather by 64-bit addresses once for each upper
        half of an address: they run once. Returns their number."""
        split = [h for h, body in self.loops.items()
                 if sum(len(self.blocks[b]) for b in body) <= 25 and
                 any(i.name == "fbl" for b in body for i in self.blocks[b])]
        for h in split:
            del self.loops[h]
        return len(split)

    def products(self):
        """Returns the number of multiplying instructions of the whole kernel: dpas, or else
        dp4a."""
        kinds = Counter(i.kind for b in self.blocks.values() for i in b)
        return kinds["dpas"] or kinds["dp4a"]

    def figures(self, blocks):
        """Returns the figures of the instructions in these blocks."""
        inside = [i for b in self.blocks if b in blocks for i in self.blocks[b]]
        pipes, kinds = Counter(), Counter()
        for i in inside:
            pipes[i.pipe] += i.cycles
            kinds[i.kind] += i.cycles
        pipes.pop("none", None)
        return {"instructions": sum(i.kind != "sync" for i in inside),
                "kinds": dict(Counter(i.kind for i in inside)),
                "scalar": sum(i.lanes == 1 and i.kind not in ("send", "sync", "flow")
                              for i in inside),
                "loads": sum(bool(i.loaded) for i in inside),
                "bytes": sum(i.loaded for i in inside),
                "local": sum(i.loaded for i in inside if i.local),
                "pipes": dict(pipes), "cycles_of": dict(kinds),
                "one": sum(pipes.values()), "side_by_side": max([*pipes.values(), 0]),
                "branches": len(blocks) > 2}

    def hot_loops(self):
        """Returns (header, blocks, figures) of loops, the hottest first: the loop with the most
        products (dpas, else dp4a), else the innermost that loads most. A loop with products of its
        own around another loop counts the inner loop's products once."""
        found = [(h, body, self.figures(body)) for h, body in self.loops.items()]
        kind = next((k for k in ("dpas", "dp4a") if any(k in f["kinds"] for _, _, f in found)), "")
        if not kind:
            found = [m for m in found if not self.holds_another(m[0])]
        return sorted(found, key=lambda m: (-m[2]["kinds"].get(kind, 0), len(m[1]) if kind else 0,
                                            -m[2]["bytes"], -m[2]["instructions"]))

    def holds_another(self, header):
        body = self.loops[header]
        return any(o != header and o in body and self.loops[o] < body for o in self.loops)

    def around(self, header):
        """Returns the loops around a loop, the innermost first."""
        return sorted(((h, b) for h, b in self.loops.items() if header in b and h != header),
                      key=lambda m: len(m[1]))


def kernels_in(folder):
    """Returns the compiler's last version of each kernel: if the first attempt spills, it tries
    again."""
    last = {}
    for path in sorted(Path(folder).rglob("*.asm"), key=lambda f: f.stat().st_mtime_ns):
        k = Kernel(path)
        last[path.parent, re.sub(r"_simd.*", "", path.name), k.name] = k
    return [k for k in last.values() if k.name != "Intel_Symbol_Table_Void_Program"]
