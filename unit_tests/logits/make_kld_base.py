#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes kld_base.bin, a file of log-probabilities in llama-perplexity's format, and kld_base.txt:
the logits it was made from, those of another model, and llama-perplexity's statistics of the two.

    unit_tests/logits/make_kld_base.py FOLDER

The script uses no code of xemoe: the layout and the formulas are llama-perplexity's.
"""
import math
import struct
import sys

CONTEXT, VOCABULARY, CHUNKS = 32, 7, 2
SCORED = CONTEXT - 1 - CONTEXT // 2


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def log_sum_exp(row):
    top = max(row)
    return top + math.log(sum(math.exp(x - top) for x in row))


def base_logits(r):
    if r == 3:
        return [1.25] * VOCABULARY  # all logits equal: the scale is 0
    row = [f32(4.0 * math.sin(1.7 * r + 0.9 * i)) for i in range(VOCABULARY)]
    if r == 5:
        row[2] = -math.inf  # a token that the model excludes
    if r == 6:
        row[1] = row[4] - 40.0  # below the range that the file can store
    return row


def other_logits(r):
    return [f32(x + 0.3 * math.cos(2.3 * r + 1.1 * i)) if math.isfinite(x) else -9.0
            for i, x in enumerate(base_logits(r))]


def encode(row):
    """Returns a row's bytes, and the log-probabilities that a reader gets from them."""
    top = max(row)
    least = max(min(row), f32(top - 16.0))
    scale = f32(f32(top - least) / 65535.0)
    start = f32(least - log_sum_exp(row))
    q = [round(f32(f32(x - least) / scale)) if scale and x > least else 0 for x in row]
    padded = q + [0] * (len(q) % 2)
    return struct.pack("<ff%dH" % len(padded), scale, start, *padded), \
        [start + scale * x for x in q]


def mean_and_error(values):
    n = len(values)
    mean = sum(values) / n
    variance = sum(x * x for x in values) / n - mean * mean
    return mean, math.sqrt(max(variance, 0.0) / (n - 1))


def quantile(values, part):
    values = sorted(values)
    at = part * (len(values) - 1)
    i = int(at)
    return values[i] + (at - i) * (values[min(i + 1, len(values) - 1)] - values[i])


def statistics(tokens, bases, others):
    nll, nll_base, kld, dp, same = [], [], [], [], 0
    for r, (p_base, logits) in enumerate(zip(bases, others)):
        chunk, i = divmod(r, SCORED)
        token = tokens[chunk * CONTEXT + CONTEXT // 2 + i + 1]
        log_p = [x - log_sum_exp(logits) for x in logits]
        nll.append(-log_p[token])
        nll_base.append(-p_base[token])
        kld.append(sum(math.exp(b) * (b - p) for b, p in zip(p_base, log_p) if b > -16.0))
        dp.append(math.exp(log_p[token]) - math.exp(p_base[token]))
        same += p_base.index(max(p_base)) == logits.index(max(logits))
    n = len(nll)
    a, da = mean_and_error(nll)
    b, db = mean_and_error(nll_base)
    cov = (sum(x * y for x, y in zip(nll, nll_base)) / n - a * b) / (n - 1)
    mse, dmse = mean_and_error([x * x for x in dp])
    ratio_error = math.sqrt(da * da + db * db - 2 * cov)
    yield "ppl", math.exp(a), math.exp(a) * da
    yield "ppl_base", math.exp(b), math.exp(b) * db
    yield "ln_ratio", a - b, ratio_error
    yield "ratio", math.exp(a - b), math.exp(a - b) * ratio_error
    yield "difference", math.exp(a) - math.exp(b), math.sqrt(
        (math.exp(a) * da) ** 2 + (math.exp(b) * db) ** 2 - 2 * math.exp(a + b) * cov)
    yield "divergence", *mean_and_error(kld)
    yield "dp", *mean_and_error(dp)
    yield "dp_rms", math.sqrt(mse), 0.5 / math.sqrt(mse) * dmse
    yield "same_top", same / n, math.sqrt(same / n * (1 - same / n) / (n - 1))
    yield "correlation", cov / (da * db), 0.0
    yield "kld_p90", quantile(kld, 0.9), 0.0
    yield "dp_p10", quantile(dp, 0.1), 0.0


def main(folder):
    tokens = [(5 * i + 3) % VOCABULARY for i in range(CHUNKS * CONTEXT)]
    rows = [base_logits(r) for r in range(CHUNKS * SCORED)]
    others = [other_logits(r) for r in range(CHUNKS * SCORED)]
    coded = [encode(row) for row in rows]
    with open(folder + "/kld_base.bin", "wb") as f:
        f.write(b"_logits_")
        f.write(struct.pack("<Iii", CONTEXT, VOCABULARY, CHUNKS))
        f.write(struct.pack("<%di" % len(tokens), *tokens))
        for data, _ in coded:
            f.write(data)
    with open(folder + "/kld_base.txt", "w", encoding="ascii") as f:
        for name, list_ in (("base", rows), ("other", others)):
            for row in list_:
                f.write(name + " " + " ".join("%.9g" % x for x in row) + "\n")
        for name, value, error in statistics(tokens, [p for _, p in coded], others):
            f.write("expect %s %.12g %.12g\n" % (name, value, error))


main(sys.argv[1])
