#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small random models in GGUF and their golden logits: the folder data; and still smaller
ones, with which the fuzz target gguf_model starts.

    python3 -m venv v; v/bin/pip install numpy gguf; v/bin/python make_models.py

Run by hand; the files are committed. The decoders here follow the formats' formulas in float64,
independently of the C sources, so that a mistake would have to be made twice. Weights are those of
the file, rounded as its format rounds them (gguf.quants). Each model's seed is the first with which
no choice of experts is close.
"""
import pathlib
import sys
from dataclasses import dataclass, field, replace

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q

HERE = pathlib.Path(__file__).parent
TOKENS = 20  # length of a model's golden text
LEAST_GAP = 2e-3  # between scores of the last chosen expert and of the next one


@dataclass
class Kind:
    """Properties shared by all layers with a window, or by all without."""
    dim: int = 16
    value_dim: int = 0  # 0: dim
    rope_dim: int = 0  # 0: dim
    base: float = 10000.0
    window: int = 0


@dataclass
class Config:
    arch: str
    layers: int = 2
    hidden: int = 64
    vocabulary: int = 64
    heads: int = 4
    kv_heads: object = 2  # for all layers, or a list by layer
    ffn: object = 64  # likewise
    eps: float = 1e-5
    full: Kind = field(default_factory=Kind)
    sliding: Kind = None
    slides: object = None  # list of bool: whether each layer has a window
    neighbours: bool = False  # rotary pairs (2i, 2i+1), else (i, i + R/2)
    rope_factors: bool = False
    scaling: dict = None
    attn_bias: bool = False
    out_bias: bool = False
    qk_norm: str = ""  # "head": each head by itself, "wide": all together
    sinks: bool = False
    latent: dict = None  # kv: its rank, q: rank of queries or 0; split: separate keys, values
    tied: bool = False
    # Experts.
    experts: int = 0
    used: int = 0
    expert_ffn: int = 32
    gate: str = "softmax"  # or sigmoid, chosen, softplus
    norm: bool = False
    scale: float = 1.0
    choice_bias: bool = False
    groups: int = 0
    groups_used: int = 0
    leading_dense: int = 0
    shared_ffn: int = 0
    shared_switch: bool = False
    shared_count: int = 0  # if not 0, the file has this in place of the width
    merged: bool = False  # gate and up of the experts in one tensor
    expert_bias: bool = False
    # Properties of single families.
    act: str = "silu"
    post_ffn_name: bool = False  # the feed-forward's norm is post_attention_norm
    gemma: bool = False
    ple: int = 0
    shared_kv: int = 0
    cap: float = 0.0
    # The file.
    types: dict = field(default_factory=dict)  # part of a name -> type of such matrices
    keys: dict = field(default_factory=dict)

    def of(self, what, layer):
        value = getattr(self, what)
        return value[layer] if isinstance(value, list) else value

    def kind(self, layer):
        return self.sliding if self.slides and self.slides[layer] else self.full

    def has_experts(self, layer):
        return self.experts and layer >= self.leading_dense

    def own_keys(self, layer):
        return layer < self.layers - self.shared_kv

    def values_are_keys(self, layer):
        return self.gemma and not self.ple and self.kind(layer) is self.full


# ---- random weights ---------------------------------------------------------------------------

def type_of(c, name):
    for part, t in c.types.items():
        if part in name:
            return t
    return Q.F32


class Weights:
    """Maps names to the numbers that a reader gets from the file, and to the stored data."""

    def __init__(self, c, seed):
        self.c, self.random = c, np.random.default_rng(seed)
        self.value, self.stored = {}, {}

    def put(self, name, x, t):
        x = np.ascontiguousarray(x, dtype=np.float32)
        if t == Q.F32:
            stored, back = x, x
        elif t == Q.F16:
            stored = x.astype(np.float16)
            back = stored.astype(np.float32)
        else:
            stored = gguf.quants.quantize(x, t)
            back = gguf.quants.dequantize(stored, t)
        self.stored[name] = (stored, t)
        self.value[name] = back.reshape(x.shape).astype(np.float64)

    def matrix(self, name, *shape, gain=1.0):
        x = self.random.standard_normal(shape) * gain / np.sqrt(shape[-1])
        self.put(name + ".weight", x, type_of(self.c, name))

    def norm(self, name, n):
        self.put(name + ".weight", 1 + 0.25 * self.random.standard_normal(n), Q.F32)

    def bias(self, name, *shape, size=0.2):
        self.put(name, size * self.random.standard_normal(shape), Q.F32)


def make_latent(w, c, i):
    k, b, kv = c.full, f"blk.{i}.", c.latent["kv"]
    q, heads, unrotated = c.latent["q"], c.heads, c.full.dim - c.full.rope_dim
    w.norm(b + "attn_norm", c.hidden)
    if q:
        w.matrix(b + "attn_q_a", q, c.hidden)
        w.norm(b + "attn_q_a_norm", q)
    w.matrix(b + ("attn_q_b" if q else "attn_q"), heads * k.dim, q or c.hidden)
    w.matrix(b + "attn_kv_a_mqa", kv + k.rope_dim, c.hidden)
    w.norm(b + "attn_kv_a_norm", kv)
    if c.latent["split"]:
        w.matrix(b + "attn_k_b", heads, kv, unrotated)
        w.matrix(b + "attn_v_b", heads, k.value_dim, kv)
    else:
        w.matrix(b + "attn_kv_b", heads * (unrotated + k.value_dim), kv)
    w.matrix(b + "attn_output", c.hidden, heads * k.value_dim)


def make_attention(w, c, i):
    k, b, kv = c.kind(i), f"blk.{i}.", c.of("kv_heads", i)
    value_dim = k.value_dim or k.dim
    sizes = {"attn_q": c.heads * k.dim, "attn_k": kv * k.dim, "attn_v": kv * value_dim}
    if not c.own_keys(i):
        del sizes["attn_k"], sizes["attn_v"]
    elif c.values_are_keys(i):
        del sizes["attn_v"]
    w.norm(b + "attn_norm", c.hidden)
    for name, n in sizes.items():
        w.matrix(b + name, n, c.hidden)
        if c.attn_bias:
            w.bias(b + name + ".bias", n)
    w.matrix(b + "attn_output", c.hidden, c.heads * value_dim)
    if c.out_bias:
        w.bias(b + "attn_output.bias", c.hidden)
    if c.qk_norm:
        w.norm(b + "attn_q_norm", sizes["attn_q"] if c.qk_norm == "wide" else k.dim)
        if c.own_keys(i):
            w.norm(b + "attn_k_norm", sizes["attn_k"] if c.qk_norm == "wide" else k.dim)
    if c.sinks:
        w.bias(b + "attn_sinks.weight", c.heads, size=1.0)


def make_experts(w, c, i):
    b, e, f, h = f"blk.{i}.", c.experts, c.expert_ffn, c.hidden
    w.matrix(b + "ffn_gate_inp", e, h, gain=2.0)
    if c.merged:
        w.matrix(b + "ffn_gate_up_exps", e, 2 * f, h)
    else:
        w.matrix(b + "ffn_gate_exps", e, f, h)
        w.matrix(b + "ffn_up_exps", e, f, h)
    w.matrix(b + "ffn_down_exps", e, h, f)
    if c.expert_bias:
        w.bias(b + "ffn_gate_inp.bias", e)
        w.bias(b + "ffn_gate_exps.bias", e, f)
        w.bias(b + "ffn_up_exps.bias", e, f)
        w.bias(b + "ffn_down_exps.bias", e, h)
    if c.choice_bias:
        w.bias(b + "exp_probs_b.bias", e, size=0.3)
    if c.shared_ffn:
        w.matrix(b + "ffn_gate_shexp", c.shared_ffn, h)
        w.matrix(b + "ffn_up_shexp", c.shared_ffn, h)
        w.matrix(b + "ffn_down_shexp", h, c.shared_ffn)
    if c.shared_switch:
        w.bias(b + "ffn_gate_inp_shexp.weight", h)
    if c.gemma:
        w.put(b + "ffn_gate_inp.scale", 1 + 0.3 * w.random.standard_normal(h), Q.F32)
        w.put(b + "ffn_down_exps.scale", 1 + 0.3 * w.random.standard_normal(e), Q.F32)
        for name in ("post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"):
            w.norm(b + name, h)


def make_layer(w, c, i):
    b, h, f = f"blk.{i}.", c.hidden, c.of("ffn", i)
    (make_latent if c.latent else make_attention)(w, c, i)
    if c.gemma or c.post_ffn_name:
        w.norm(b + "post_attention_norm", h)
    if not c.post_ffn_name:
        w.norm(b + "ffn_norm", h)
    if c.has_experts(i):
        make_experts(w, c, i)
    if not c.has_experts(i) or c.gemma:
        w.matrix(b + "ffn_gate", f, h)
        w.matrix(b + "ffn_up", f, h)
        w.matrix(b + "ffn_down", h, f)
    if c.gemma:
        w.norm(b + "post_ffw_norm", h)
        w.put(b + "layer_output_scale.weight", w.random.uniform(0.3, 0.9, 1), Q.F32)
    if c.ple:
        w.matrix(b + "inp_gate", c.ple, h)
        w.matrix(b + "proj", h, c.ple)
        w.norm(b + "post_norm", h)


def make_weights(c, seed):
    w = Weights(c, seed)
    w.matrix("token_embd", c.vocabulary, c.hidden, gain=2.0 if c.tied else np.sqrt(c.hidden))
    w.norm("output_norm", c.hidden)
    if not c.tied:
        w.matrix("output", c.vocabulary, c.hidden)
    if c.rope_factors:
        pairs = (c.full.rope_dim or c.full.dim) // 2
        factors = np.ones(pairs)
        kept = pairs // 4 or 1
        factors[kept:] = 1e30 if c.gemma else np.linspace(1.5, 8, pairs - kept)
        w.put("rope_freqs.weight", factors, Q.F32)
    if c.ple:
        w.put("per_layer_token_embd.weight",
              w.random.standard_normal((c.vocabulary, c.ple * c.layers)),
              type_of(c, "per_layer_token_embd"))
        w.matrix("per_layer_model_proj", c.ple * c.layers, c.hidden)
        w.norm("per_layer_proj_norm", c.ple)
    for i in range(c.layers):
        make_layer(w, c, i)
    return w


# ---- the decoders ------------------------------------------------------------------------------

def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def glu(c, gate, up):
    if c.act == "clamped":
        gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
        return gate * sigmoid(1.702 * gate) * (up + 1)
    return (gelu if c.act == "gelu" else silu)(gate) * up


class Decoder:
    def __init__(self, c, w):
        self.c, self.w = c, w.value
        self.gap = np.inf  # smallest gap at a choice of experts so far

    def t(self, name, i=None):
        return self.w[name if i is None else f"blk.{i}.{name}"]

    def rms(self, x):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.c.eps)

    def norm(self, name, x, i=None):
        return self.rms(x) * self.t(name + ".weight", i)

    def project(self, name, i, x):
        y = x @ self.t(name + ".weight", i).T
        bias = f"blk.{i}.{name}.bias"
        return y + self.w[bias] if bias in self.w else y

    # -- rotary positions

    def frequencies(self, k):
        """Returns the frequencies of pairs, and the factor of cosines and sines."""
        c, r = self.c, k.rope_dim or k.dim
        inverse = k.base ** (-2.0 * np.arange(r // 2) / r)
        factor = 1.0
        s = c.scaling
        if s and s["type"] == "linear":
            inverse = inverse / s["factor"]
        if s and s["type"] == "yarn":
            def turns(n):  # index of the pair with n turns in the original context
                return r * np.log(s["context"] / (n * 2 * np.pi)) / (2 * np.log(k.base))
            low, high = turns(s.get("fast", 32.0)), turns(s.get("slow", 1.0))
            if not s.get("exact"):
                low, high = np.floor(low), np.ceil(high)
            low, high = max(low, 0), min(high, r - 1)
            ramp = np.clip((np.arange(r // 2) - low) / max(high - low, 0.001), 0, 1)
            inverse = inverse / s["factor"] * ramp + inverse * (1 - ramp)
            factor = 1.0 if c.latent else 0.1 * np.log(s["factor"]) + 1
        if s:
            factor *= s.get("attn_factor", 1.0)
        if c.rope_factors and (not c.gemma or k is c.full):
            inverse = inverse / self.t("rope_freqs.weight")
        return inverse, factor

    def rotate(self, k, x):
        """Rotates x [T,heads,dim] by positions, which are the indices of rows."""
        inverse, factor = self.frequencies(k)
        n = len(inverse)
        angle = np.arange(x.shape[0])[:, None, None] * inverse
        cos, sin = np.cos(angle) * factor, np.sin(angle) * factor
        y = x.copy()
        if self.c.neighbours:
            first, second = slice(0, 2 * n, 2), slice(1, 2 * n, 2)
        else:
            first, second = slice(0, n), slice(n, 2 * n)
        a, b = x[..., first], x[..., second]
        y[..., first], y[..., second] = a * cos - b * sin, b * cos + a * sin
        return y

    # -- attention

    def heads(self, name, i, x, n, dim):
        norm = name + "_norm"
        has = f"blk.{i}.{norm}.weight" in self.w
        if has and self.c.qk_norm == "wide":
            x = self.norm(norm, x, i)
        x = x.reshape(len(x), n, dim)
        return self.norm(norm, x, i) if has and self.c.qk_norm == "head" else x

    def keys_and_values(self, i, x):
        c, k, n = self.c, self.c.kind(i), self.c.of("kv_heads", i)
        raw = self.project("attn_k", i, x)
        keys = self.rotate(k, self.heads("attn_k", i, raw, n, k.dim))
        values = raw if c.values_are_keys(i) else self.project("attn_v", i, x)
        values = values.reshape(len(x), n, -1)
        return keys, self.rms(values) if c.gemma else values

    def attention(self, i, x):
        c, k = self.c, self.c.kind(i)
        q = self.heads("attn_q", i, self.project("attn_q", i, x), c.heads, k.dim)
        q = self.rotate(k, q)
        if c.own_keys(i):
            self.kept[k is c.full] = self.keys_and_values(i, x)
        keys, values = self.kept[k is c.full]
        group = c.heads // keys.shape[1]
        distance = np.arange(len(x))[:, None] - np.arange(len(x))[None, :]
        seen = (distance >= 0) & ((distance < k.window) if k.window else True)
        out = []
        for h in range(c.heads):
            scores = q[:, h] @ keys[:, h // group].T
            scores = scores if c.gemma else scores / np.sqrt(k.dim)
            scores = np.where(seen, scores, -np.inf)
            if c.sinks:
                sink = np.full((len(x), 1), self.t("attn_sinks.weight", i)[h])
                p = softmax(np.concatenate([scores, sink], -1))[:, :-1]
            else:
                p = softmax(scores)
            out.append(p @ values[:, h // group])
        return self.project("attn_output", i, np.concatenate(out, -1))

    def latent_attention(self, i, x):
        """Multiplies queries by the latent, as files with separate keys and values do."""
        c, k, kv = self.c, self.c.full, self.c.latent["kv"]
        unrotated = k.dim - k.rope_dim
        if c.latent["q"]:
            q = self.project("attn_q_b", i, self.norm("attn_q_a_norm",
                                                      self.project("attn_q_a", i, x), i))
        else:
            q = self.project("attn_q", i, x)
        q = q.reshape(len(x), c.heads, k.dim)
        q_rotated = self.rotate(k, q[..., unrotated:])
        a = self.project("attn_kv_a_mqa", i, x)
        latent = self.norm("attn_kv_a_norm", a[:, :kv], i)
        shared = self.rotate(k, a[:, None, kv:])[:, 0]
        if c.latent["split"]:
            to_latent, values = self.t("attn_k_b.weight", i), self.t("attn_v_b.weight", i)
        else:
            both = self.t("attn_kv_b.weight", i).reshape(c.heads, -1, kv)
            to_latent = both[:, :unrotated].transpose(0, 2, 1)
            values = both[:, unrotated:]
        scale = 1 / np.sqrt(k.dim)
        if c.scaling:
            scale *= (1 + c.scaling["log"] * np.log(c.scaling["factor"])) ** 2
        seen = np.tril(np.ones((len(x), len(x)), bool))
        out = []
        for h in range(c.heads):
            scores = (q[:, h, :unrotated] @ to_latent[h].T) @ latent.T + q_rotated[:, h] @ shared.T
            p = softmax(np.where(seen, scores * scale, -np.inf))
            out.append(p @ latent @ values[h].T)
        return self.project("attn_output", i, np.concatenate(out, -1))

    # -- feed-forwards

    def dense(self, i, x, suffix=""):
        inner = glu(self.c, self.project("ffn_gate" + suffix, i, x),
                    self.project("ffn_up" + suffix, i, x))
        return self.project("ffn_down" + suffix, i, inner)

    def note_gap(self, scores, n):
        ordered = np.sort(scores)[::-1]
        if n < len(ordered):
            self.gap = min(self.gap, ordered[n - 1] - ordered[n])

    def best_groups(self, scores):
        """Returns the scores, with -inf for experts outside the best groups."""
        c = self.c
        apart = scores.reshape(c.groups, -1)
        n_best = 2 if c.choice_bias else 1
        worth = np.sort(apart, -1)[:, -n_best:].sum(-1)
        self.note_gap(worth, c.groups_used)
        keep = np.argsort(-worth, kind="stable")[:c.groups_used]
        out = np.full_like(apart, -np.inf)
        out[keep] = apart[keep]
        return out.reshape(-1)

    def choose(self, i, logits):
        """Returns a token's experts and their weights."""
        c = self.c
        scores = {"softmax": softmax, "sigmoid": sigmoid, "chosen": lambda x: x,
                  "softplus": lambda x: np.sqrt(np.log1p(np.exp(x)))}[c.gate](logits)
        choice = scores + self.t("exp_probs_b.bias", i) if c.choice_bias else scores
        if c.groups > 1:
            choice = self.best_groups(choice)
        self.note_gap(choice, c.used)
        chosen = np.argsort(-choice, kind="stable")[:c.used]
        weights = scores[chosen]
        if c.gate == "chosen":
            weights = softmax(weights)
        elif c.norm:
            weights = weights / weights.sum()
        weights = weights * c.scale
        if c.gemma:
            weights = weights * self.t("ffn_down_exps.scale", i)[chosen]
        return chosen, weights

    def expert(self, i, e, x):
        f = self.c.expert_ffn

        def product(name, x):
            bias = f"blk.{i}.{name}.bias"
            return self.t(name + ".weight", i)[e] @ x + (self.w[bias][e] if bias in self.w else 0)
        if self.c.merged:
            both = product("ffn_gate_up_exps", x)
            gate, up = both[:f], both[f:]
        else:
            gate, up = product("ffn_gate_exps", x), product("ffn_up_exps", x)
        return product("ffn_down_exps", glu(self.c, gate, up))

    def routed(self, i, x, scored):
        logits = self.project("ffn_gate_inp", i, scored)
        out = np.zeros_like(x)
        for t in range(len(x)):
            for e, weight in zip(*self.choose(i, logits[t])):
                out[t] += weight * self.expert(i, e, x[t])
        return out

    def feed_forward(self, i, h):
        c = self.c
        if c.gemma and c.has_experts(i):
            one = self.norm("post_ffw_norm_1", self.dense(i, self.norm("ffn_norm", h, i)), i)
            scored = self.rms(h) / np.sqrt(c.hidden) * self.t("ffn_gate_inp.scale", i)
            two = self.routed(i, self.norm("pre_ffw_norm_2", h, i), scored)
            return one + self.norm("post_ffw_norm_2", two, i)
        x = self.norm("post_attention_norm" if c.post_ffn_name else "ffn_norm", h, i)
        if not c.has_experts(i):
            return self.dense(i, x)
        y = self.routed(i, x, x)
        if c.shared_ffn:
            shared = self.dense(i, x, "_shexp")
            if c.shared_switch:
                shared = shared * sigmoid(x @ self.t("ffn_gate_inp_shexp.weight", i))[:, None]
            y = y + shared
        return y

    # -- the whole

    def layer(self, i, h):
        c = self.c
        attention = self.latent_attention if c.latent else self.attention
        a = attention(i, self.norm("attn_norm", h, i))
        h = h + (self.norm("post_attention_norm", a, i) if c.gemma else a)
        f = self.feed_forward(i, h)
        h = h + (self.norm("post_ffw_norm", f, i) if c.gemma else f)
        if c.ple:
            g = gelu(h @ self.t("inp_gate.weight", i).T) * self.ple[:, i]
            h = h + self.norm("post_norm", g @ self.t("proj.weight", i).T, i)
        return h * self.t("layer_output_scale.weight", i) if c.gemma else h

    def logits(self, ids):
        c = self.c
        self.kept = {}
        table = self.t("token_embd.weight")
        h = table[ids] * (np.sqrt(c.hidden) if c.gemma else 1.0)
        if c.ple:
            shape = (len(ids), c.layers, c.ple)
            of_token = self.t("per_layer_token_embd.weight")[ids].reshape(shape) * np.sqrt(c.ple)
            of_x = (h @ self.t("per_layer_model_proj.weight").T).reshape(shape) / np.sqrt(c.hidden)
            self.ple = (self.norm("per_layer_proj_norm", of_x) + of_token) / np.sqrt(2)
        for i in range(c.layers):
            h = self.layer(i, h)
        y = self.norm("output_norm", h) @ (table if c.tied else self.t("output.weight")).T
        return c.cap * np.tanh(y / c.cap) if c.cap else y


# ---- files -------------------------------------------------------------------------------------

def keys_of(c):
    """Returns the file's keys and values; ints become u32, floats f32."""
    k = {"block_count": c.layers, "context_length": 4096, "embedding_length": c.hidden,
         "feed_forward_length": c.ffn, "attention.head_count": c.heads,
         "attention.head_count_kv": c.kv_heads,
         "attention.layer_norm_rms_epsilon": float(c.eps), "rope.freq_base": float(c.full.base),
         "rope.dimension_count": c.full.rope_dim or c.full.dim}
    if c.full.dim * c.heads != c.hidden or c.full.value_dim:
        k["attention.key_length"] = c.full.dim
        k["attention.value_length"] = c.full.value_dim or c.full.dim
    if c.latent:
        k["attention.kv_lora_rank"] = c.latent["kv"]
        if c.latent["q"]:
            k["attention.q_lora_rank"] = c.latent["q"]
    if c.latent and c.latent["split"]:
        k.update({"attention.head_count_kv": 1, "attention.key_length_mla": c.full.dim,
                  "attention.value_length_mla": c.full.value_dim,
                  "attention.key_length": c.latent["kv"] + c.full.rope_dim,
                  "attention.value_length": c.latent["kv"]})
    if c.slides:
        k["attention.sliding_window"] = c.sliding.window
    if c.gemma:
        k.update({"attention.key_length_swa": c.sliding.dim,
                  "attention.value_length_swa": c.sliding.dim,
                  "attention.sliding_window_pattern": c.slides,
                  "attention.shared_kv_layers": c.shared_kv,
                  "rope.freq_base_swa": float(c.sliding.base),
                  "rope.dimension_count_swa": c.sliding.dim,
                  "embedding_length_per_layer_input": c.ple,
                  "final_logit_softcapping": float(c.cap)})
    if c.scaling:
        s = c.scaling
        k.update({"rope.scaling.type": s["type"], "rope.scaling.factor": float(s["factor"])})
        for key, name in (("context", "original_context_length"), ("fast", "yarn_beta_fast"),
                          ("slow", "yarn_beta_slow"), ("attn_factor", "attn_factor"),
                          ("log", "yarn_log_multiplier")):
            if key in s:
                k["rope.scaling." + name] = s[key]
    if c.experts:
        k.update({"expert_count": c.experts, "expert_used_count": c.used})
        if c.arch != "llama":  # llama's files have the width in feed_forward_length
            k["expert_feed_forward_length"] = c.expert_ffn
    if c.groups:
        k.update({"expert_group_count": c.groups, "expert_group_used_count": c.groups_used})
    if c.scale != 1.0:
        k["expert_weights_scale"] = float(c.scale)
    if c.leading_dense:
        k["leading_dense_block_count"] = c.leading_dense
    if c.shared_count:
        k["expert_shared_count"] = c.shared_count
    elif c.shared_ffn:
        k["expert_shared_feed_forward_length"] = c.shared_ffn
    k.update(c.keys)
    return k


def write(path, c, w):
    out = gguf.GGUFWriter(path, c.arch)
    for key, value in keys_of(c).items():
        key = f"{c.arch}.{key}"
        if isinstance(value, bool):
            out.add_bool(key, value)
        elif isinstance(value, list):
            out.add_array(key, value)
        elif isinstance(value, str):
            out.add_string(key, value)
        elif isinstance(value, int):
            out.add_uint32(key, value)
        else:
            out.add_float32(key, value)
    for name, (stored, t) in w.stored.items():
        out.add_tensor(name, stored, raw_dtype=t)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


# ---- the models --------------------------------------------------------------------------------

MIXED = {"token_embd": Q.Q8_0, "attn_q": Q.Q4_1, "attn_k": Q.Q5_0, "attn_v": Q.Q8_0,
         "attn_output": Q.Q4_0, "gate_exps": Q.Q4_0, "up_exps": Q.Q4_0, "down_exps": Q.Q5_1,
         "ffn_gate_inp": Q.F32, "shexp": Q.Q8_0, "ffn_": Q.Q5_0, "output": Q.Q8_0,
         "inp_gate": Q.Q8_0, "per_layer": Q.Q8_0, "proj": Q.F16}
HALVES = {**MIXED, **{name: Q.F16 for name in MIXED if name.startswith(("attn", "token"))}}
BRAINS = {**MIXED, **{name: Q.BF16 for name in MIXED if name.startswith(("attn", "token"))}}
FP4 = {"_exps": Q.MXFP4, **MIXED}


def qwen3moe(**more):
    return Config("qwen3moe", **{"heads": 2, "kv_heads": 1, "qk_norm": "head",
                                 "full": Kind(dim=32, base=1e6), "experts": 4, "used": 2,
                                 "norm": True, "types": MIXED, **more})


MODELS = {
    "llama": Config("llama", neighbours=True, rope_factors=True, types=HALVES),
    "llama-lengths": Config("llama", neighbours=True, attn_bias=True, out_bias=True,
                            full=Kind(dim=32, value_dim=16, rope_dim=24),
                            scaling={"type": "linear", "factor": 4.0}, types=MIXED),
    "mixtral": Config("llama", neighbours=True, experts=4, used=2, expert_ffn=32, ffn=32,
                      norm=True, types=MIXED),
    "qwen2": Config("qwen2", attn_bias=True, tied=True, types=BRAINS,
                    scaling={"type": "yarn", "factor": 4.0, "context": 2048}),
    "qwen2moe": Config("qwen2moe", attn_bias=True, experts=5, used=3, shared_ffn=32,
                       shared_switch=True, types=MIXED),
    "qwen3": Config("qwen3", qk_norm="head", full=Kind(dim=32, base=1e6), types=MIXED,
                    tied=True, scaling={"type": "yarn", "factor": 8.0, "context": 4096,
                                        "attn_factor": 0.8, "fast": 16.0, "slow": 2.0}),
    "qwen3moe": qwen3moe(),
    "qwen3moe-sums": qwen3moe(layers=1, norm=False, keys={"expert_weights_norm": False}),
    "qwen3moe-gate-2": qwen3moe(layers=1, gate="sigmoid", keys={"expert_gating_func": 2}),
    "qwen3moe-gate-3": qwen3moe(layers=1, gate="chosen", keys={"expert_gating_func": 3}),
    "qwen3moe-gate-4": qwen3moe(layers=1, gate="softplus", keys={"expert_gating_func": 4}),
    "olmoe": Config("olmoe", heads=2, kv_heads=2, qk_norm="wide", experts=5, used=2, types=MIXED),
    "dots1": Config("dots1", qk_norm="head", experts=12, used=4, gate="sigmoid",
                    norm=True, scale=2.5, choice_bias=True, groups=4, groups_used=2,
                    leading_dense=1, shared_ffn=64, shared_count=2, types=MIXED,
                    keys={"expert_gating_func": 2, "expert_weights_norm": True}),
    "dots1-groups": Config("dots1", heads=2, kv_heads=1, qk_norm="head", experts=8, used=2,
                           gate="softmax", groups=4, groups_used=2, leading_dense=1, shared_ffn=32,
                           types=MIXED, keys={"expert_gating_func": 1,
                                              "expert_weights_norm": False}),
    "glm4moe": Config("glm4moe", heads=2, kv_heads=1, attn_bias=True, qk_norm="head",
                      full=Kind(dim=32, rope_dim=16, base=1e6), experts=5, used=2,
                      gate="sigmoid", norm=True, scale=1.5, choice_bias=True, leading_dense=1,
                      shared_ffn=32, shared_count=1, post_ffn_name=True, types=MIXED),
    "deepseek2": Config("deepseek2", heads=2, neighbours=True, experts=8, used=3,
                        full=Kind(dim=48, value_dim=16, rope_dim=16),
                        latent={"q": 32, "kv": 32, "split": False}, gate="sigmoid", norm=True,
                        scale=2.5, choice_bias=True, groups=4, groups_used=2, leading_dense=1,
                        shared_ffn=32, shared_count=1, types=MIXED,
                        keys={"expert_gating_func": 2, "expert_weights_norm": True},
                        scaling={"type": "yarn", "factor": 40.0, "context": 4096, "log": 0.1}),
    "deepseek2-lite": Config("deepseek2", heads=2, neighbours=True, experts=5, used=2,
                             full=Kind(dim=48, value_dim=16, rope_dim=16),
                             latent={"q": 0, "kv": 32, "split": True}, leading_dense=1,
                             shared_ffn=64, shared_count=2, types=MIXED,
                             keys={"expert_weights_norm": False, "expert_weights_scale": 1.0}),
    "gpt-oss": Config("gpt-oss", layers=3, heads=2, kv_heads=1, attn_bias=True, out_bias=True,
                      sinks=True,
                      full=Kind(base=150000.0), sliding=Kind(base=150000.0, window=7),
                      slides=[True, False, True], experts=4, used=2, gate="chosen",
                      expert_bias=True, act="clamped", post_ffn_name=True, types=FP4,
                      scaling={"type": "yarn", "factor": 32.0, "context": 4096, "exact": True}),
    "gemma4-moe": Config("gemma4", heads=2, gemma=True, act="gelu", qk_norm="head", tied=True,
                         kv_heads=[2, 1], full=Kind(dim=64, base=1e6),
                         sliding=Kind(dim=32, window=6), slides=[True, False],
                         rope_factors=True, cap=30.0, eps=1e-6, experts=5, used=2, norm=True,
                         merged=True, types={"gate_up_exps": Q.Q4_0, **MIXED}),
    "gemma4-e": Config("gemma4", layers=5, heads=2, gemma=True, act="gelu", qk_norm="head",
                       tied=True, kv_heads=1, ffn=[32, 32, 32, 64, 64], full=Kind(dim=32, base=1e6),
                       sliding=Kind(window=6), slides=[True, True, False, True, False],
                       rope_factors=True, cap=30.0, eps=1e-6, ple=32, shared_kv=2, types=MIXED),
    "gemma4-dense": Config("gemma4", layers=4, heads=2, gemma=True, act="gelu", qk_norm="head",
                           tied=True, kv_heads=[2, 2, 2, 1], full=Kind(dim=32, base=1e6),
                           sliding=Kind(window=6), slides=[True, True, True, False],
                           rope_factors=True, cap=30.0, eps=1e-6, types=MIXED),
}


SMALL = {"types": {}, "vocabulary": 4, "hidden": 4, "heads": 2, "kv_heads": 1, "layers": 1,
         "ffn": 4, "leading_dense": 0}
SMALL_EXPERTS = {**SMALL, "experts": 4, "used": 1, "expert_ffn": 2}
TWO = {"full": Kind(dim=4), "sliding": Kind(dim=2, window=2)}
SEEDS = {
    "llama": SMALL,
    "llama-lengths": {**SMALL, "full": Kind(dim=4, value_dim=2, rope_dim=2)},
    "mixtral": {**SMALL_EXPERTS, "ffn": 2},
    "qwen2": SMALL,
    "qwen2moe": {**SMALL_EXPERTS, "shared_ffn": 2},
    "olmoe": SMALL_EXPERTS,
    "dots1": {**SMALL_EXPERTS, "groups": 2, "groups_used": 1, "shared_ffn": 4},
    "glm4moe": {**SMALL_EXPERTS, "full": Kind(dim=4, rope_dim=2), "shared_ffn": 2},
    "deepseek2": {**SMALL_EXPERTS, "groups": 2, "groups_used": 1, "shared_ffn": 2,
                  "full": Kind(dim=4, value_dim=2, rope_dim=2),
                  "latent": {"q": 2, "kv": 2, "split": False}},
    "deepseek2-lite": {**SMALL_EXPERTS, "shared_ffn": 4,
                       "full": Kind(dim=4, value_dim=2, rope_dim=2),
                       "latent": {"q": 0, "kv": 2, "split": True}},
    "gpt-oss": {**SMALL_EXPERTS, **TWO, "slides": [True]},
    "gemma4-moe": {**SMALL_EXPERTS, **TWO, "slides": [False]},
    "gemma4-e": {**SMALL, **TWO, "layers": 3, "slides": [True, False, False], "shared_kv": 1,
                 "ffn": [2, 2, 4], "ple": 2},
}


def make_seeds(folder):
    folder.mkdir(exist_ok=True)
    for name, changes in SEEDS.items():
        c = replace(MODELS[name], **changes)
        write(folder / name, c, make_weights(c, 1))


def make(name, c):
    """Writes the model of the first seed without a close choice; returns ids and logits."""
    first = sum(name.encode())
    for seed in range(first, first + 1000):
        w = make_weights(c, seed)
        ids = np.random.default_rng(seed).integers(0, c.vocabulary, TOKENS)
        d = Decoder(c, w)
        logits = d.logits(ids)
        if d.gap >= LEAST_GAP:
            break
    else:
        sys.exit(f"{name}: every seed has a close choice")
    path = HERE / "data" / f"{name}.gguf"
    write(path, c, w)
    print(f"{name}: seed {seed}, {path.stat().st_size} bytes, closest choice {d.gap:.3g}, "
          f"logits to {np.abs(logits).max():.3g}")
    return ids, logits


def main():
    make_seeds(HERE.parent / "fuzz" / "corpus" / "gguf_model")
    (HERE / "data").mkdir(exist_ok=True)
    golden = gguf.GGUFWriter(HERE / "data" / "golden.gguf", "golden")
    for name, c in MODELS.items():
        ids, logits = make(name, c)
        golden.add_array(name + ".ids", [int(i) for i in ids])
        golden.add_tensor(name + ".logits", logits.astype(np.float32))
    golden.write_header_to_file()
    golden.write_kv_data_to_file()
    golden.write_tensors_to_file()
    golden.close()


if __name__ == "__main__":
    main()
