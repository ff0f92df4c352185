# SPDX-License-Identifier: Apache-2.0
"""Results of reference implementations for texts: the folder data beside this file, which
test_gguf_sentencepiece.cpp and test_gguf_cuts.cpp read.

    make_gguf_text.py

writes, with the PyPI packages sentencepiece, tokenizers and gguf,

    cuts.json   how the pre-tokenizers of published tokenizer.json files cut some texts:
                {"texts": [text], "cuts": {name: [[bytes of each piece] of each text]}}
    spm-*.gguf  keys of files with small SentencePiece vocabularies of the kind BPE
    spm-*.json  ids and decoded texts for those: [{"text", "ids", "decoded"}]
    unigram.*   the same for the kind Unigram, with a small map of characters
    bert*       the same for a WordPiece vocabulary, by the package tokenizers, with its files
    odd.json    how byte-level patterns cut some hundred texts of odd characters, as cuts.json

The texts are those of the test models, every tenth of which is random.
"""
import io
import json
import os
import random
import tempfile

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, BertWordPieceTokenizer, Regex
from tokenizers.decoders import WordPiece
from tokenizers.pre_tokenizers import (
    ByteLevel, Digits, Punctuation, Sequence, Split, WhitespaceSplit)
from tokenizers.processors import TemplateProcessing

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "data")
MODELS = os.path.join(HERE, "../../../functional_tests/models")


def texts_of_models():
    with open(os.path.join(MODELS, "qwen3moe-tiny/golden/tokenizer.json"), encoding="utf-8") as f:
        return [item["text"] for item in json.load(f)["items"]]


# ---- cuts of words

TRICKY = [
    "Hello world, it's 12345 apples; they'RE 3.14 € each!\r\n\r\n  next\tline   ",
    "I'll don't WE'VE y'all'd 'S 'quoted' ''twice''",
    "camelCase HTMLParser iPhone16Pro ÉcoleNormale straßeMASSE ǅungla",
    "1 22 333 4444 55555 666666 7777777 ١٢٣٤٥ Ⅷ ½² 12,345.67",
    "漢字かなカナ混じり文、句読点。 中文 和 English混排 ｶﾅ ０１２",
    "한국어 문장입니다. ㄱㄴㄷ ᄀ 안녕!",
    "Ünïcödé e\u0301te\u0301 a\u0308 क्षेत्र ไทยภาษา עברית العربية",
    "path/to/file.c: if (a<=b && c!=d) { return x->y[i]++; } // done\n\n\n\t\treturn;\n",
    "emoji 😀👍🏽👨‍👩‍👧 flags🇫🇷 ✓ ★☆ \u2028 sep\u00a0nbsp\u3000wide",
    "   leading and trailing   ", "\n", " \n \n", "\r\n\r\n", "\t", " ", "a", "",
    "$100 + £20 = ¥3_000 <tag attr=\"v\"> `code` ^~|", "#include <stdio.h>\r\n",
    "_under_score_ __init__ x_1 a-b—c–d…e", "Привет, мир! Ωmega ſhort Kelvin'ſ",
    "1st 2nd3rd v1.2.3-rc4 0xFF 1e-9 2024-01-31T12:00:00Z", "……！！？？“引用”‘单’——：；，〈〉",
    "ㄅㄆㄇ ︰﹏ ﬁne ﬀ ﬓ 𐐀𐐨 𝔘𝔫𝔦 ａｂｃ ＡＢＣ！", "a  b   c    d\n e\n\n  f",
    "done;\n/* a */\r\n// b\n\n/c !?\n\n//",
    "(x|y) . , ! ? … a。b，c IMGIMGABCZ <sentinel:12> x\u200cy k\u200d 1234567 " + 9 * " " + "e",
]

GPT_2 = ByteLevel(add_prefix_space=False, use_regex=True)
ASCII_SIGNS = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
# Letters of alphabets with capitals, from deepseek-llm's file.
ALPHABETS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-"
    "\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-"
    "\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5"
    "\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00"
    "-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-"
    "\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-"
    "\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-"
    "\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149"
    "\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13"
    "-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
    "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df"
    "\U0001e900-\U0001e943")


def cut(*patterns):
    return Sequence([Split(Regex(p), "isolated") for p in patterns])


CUTS = {
    "gpt-2": GPT_2,
    # From no published file. Without ByteLevel, after which \p{N} would match bytes.
    "default": cut(r"[\p{P}\$\+<=>\^~\|]+",
                   r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
                   r"\p{N}+", "[0-9][0-9][0-9]"),
    "falcon": Sequence([Punctuation("contiguous"), GPT_2,
                        Split(Regex(r"[0-9][0-9][0-9]"), "isolated")]),
    "smollm": Sequence([Digits(individual_digits=True), GPT_2]),
    "qwen2": cut(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
                 r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "qwen35": cut(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|"
                  r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "llama-bpe": cut(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
                     r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "dbrx": cut(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
                r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "glm4": cut(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
                r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "jais-2": cut(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
                  r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
                  + "|".join(rf"\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4))
                  + r"|\s{1,2}(?!\S)|\s{1}"),
    "k2-horizon": cut(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
        r"[^\r\n\p{L}\p{N}]?(?:\p{L}|\p{M}|\u200C|\u200D)+|\p{N}{1,3}|"
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "ufakzeka": cut(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
                    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "minicpm5": cut(r"\p{N}{1,3}",
                    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|"
                    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "laguna": cut(r"[^\n]+|[\n]+",
                  r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
                  r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "gpt-4o": cut(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|"
        r"\s+(?!\S)|\s+"),
    "tiny_aya": cut(
        r"\d{1,3}(?=(?:\d{3})*\b)",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|"
        r"\s+(?!\S)|\s+"),
    "granite-embed-multi-97m": cut(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|"
        r"\s+(?!\S)|\s+"),
    "youtu": cut(
        "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|"
        r"\s+(?!\S)|\s+"),
    "tekken": cut(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
        r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "kimi-k2": cut(
        r"[\p{Han}]+|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "deepseek-llm": Sequence([
        cut("[\r\n]", r"\s?[" + ALPHABETS + "]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
            r"\s+$", "[一-龥ࠀ-一가-퟿]+"), Digits(individual_digits=True)]),
    "deepseek-coder": Sequence([
        cut("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+"),
        Digits(individual_digits=True)]),
    "deepseek-v3": cut(
        r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
        ASCII_SIGNS + r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
        r"\s*[\r\n]+|\s+(?!\S)|\s+"),
    "spark2_5": cut(
        r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
        ASCII_SIGNS + r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|"
        r"\s+(?!\S)|\s+", r"\p{N}"),
    # Digits are cut into groups of three from the right.
    "afmoe": cut(
        r"\p{N}{1,2}(?=(\p{N}{3})+(?!\p{N}))|\p{N}{3}|\p{N}+",
        "[一-鿿㐀-䶿豈-\ufaff぀-ゟ゠-ヿ･-ﾟ⼀-\u2fdfเ-\u0e7f\u0e80-\u0effក-\u17ffက-႟"
        "ꩠ-ꩿꧠ-\ua9ff가-\ud7afᄀ-ᇿ]+",
        ASCII_SIGNS + r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
        r"\s*[\r\n]+|\s+(?!\S)|\s+"),
    "superbpe": cut(r"\p{N}+", r"(?=(\d{3})+(?!\d))"),
    "bloom": cut(r" ?[^(\s|[.,!?…。，、।۔،])]+"),
    "viking": Sequence([cut(r" ?[^(\s|[.,!?…。，、।۔،])]+"), Digits(individual_digits=True)]),
    "chameleon": Sequence([
        cut("<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )"),
        Digits(individual_digits=True), Punctuation("isolated"), GPT_2]),
    "bailingmoe": cut(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}|"
                      r" ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"),
    "seed-coder": cut(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}|"
                      r" ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "exaone-moe": cut(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
                      r"[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|"
                      r" ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"),
    "gemma4": cut(r"[^\n]+|[\n]+"),
    "sarvam-moe": cut(r"[^\n]+|[\n]+"),
    "whitespace": WhitespaceSplit(),
}


def pieces(pre, text):
    """Returns the bytes of each piece; only ByteLevel's may end inside a character."""
    spans = [span for _, span in pre.pre_tokenize_str(text)]
    starts = [0] + [end for _, end in spans[:-1]]
    if isinstance(pre, WhitespaceSplit):
        starts = [start for start, _ in spans]
    return [len(text[a:b].encode()) for a, (_, b) in zip(starts, spans)]


def write_cuts():
    texts = TRICKY + [t for t in texts_of_models() if "\0" not in t][::10]
    cuts = {name: [pieces(pre, t) for t in texts] for name, pre in CUTS.items()}
    with open(os.path.join(DATA, "cuts.json"), "w", encoding="utf-8") as f:
        rows = ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}"
                          for k, v in cuts.items())
        f.write('{"texts":%s,\n"cuts":{\n%s}}\n' % (json.dumps(texts, ensure_ascii=False), rows))


# ---- SentencePiece

def train(texts, **how):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, model_type="bpe",
        normalization_rule_name="identity", minloglevel=2, **how)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def token_type(sp, i):
    for is_it, kind in ((sp.is_unknown, 2), (sp.is_control, 3), (sp.is_unused, 5), (sp.is_byte, 6)):
        if is_it(i):
            return kind
    return 1


def writer_of(sp, name, kind):
    ids = range(sp.vocab_size())
    w = gguf.GGUFWriter(os.path.join(DATA, name + ".gguf"), "toy")
    w.add_tokenizer_model(kind)
    w.add_token_list([sp.id_to_piece(i) for i in ids])
    w.add_token_scores([sp.get_score(i) for i in ids])
    w.add_token_types([token_type(sp, i) for i in ids])
    w.add_bos_token_id(sp.bos_id())
    w.add_eos_token_id(sp.eos_id())
    w.add_unk_token_id(sp.unk_id())
    return w


def write_keys(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def write_samples(name, samples):
    rows = [json.dumps({"text": t, "ids": ids, "decoded": d}, ensure_ascii=False,
                       separators=(",", ":")) for t, ids, d in samples]
    with open(os.path.join(DATA, name + ".json"), "w", encoding="utf-8") as f:
        f.write("[" + ",\n".join(rows) + "]\n")


def write_spm(name, sp, prefix, single, texts):
    w = writer_of(sp, name, "llama")
    w.add_add_space_prefix(prefix)
    w.add_remove_extra_whitespaces(single)
    write_keys(w)
    encoded = [(t, sp.encode(t)) for t in texts]
    write_samples(name, [(t, ids, sp.decode(ids)) for t, ids in encoded])


def write_all_spm():
    # Texts with control tokens are left out: sentencepiece takes these as plain characters.
    texts = [t for t in TRICKY + texts_of_models() if "\0" not in t and "<" not in t]
    # No training on other scripts, which become bytes or the unknown token.
    lines = [line for t in texts for line in t.splitlines() if line.strip() and max(line) < "\u0250"]
    most = {"max_sentence_length": 1 << 16, "add_dummy_prefix": True,
            "remove_extra_whitespaces": False}
    write_spm("spm-bytes", train(lines, vocab_size=800, byte_fallback=True,
                                 character_coverage=0.99, **most), True, False, texts[::2])
    most.update(add_dummy_prefix=False, remove_extra_whitespaces=True)
    # Texts with the mark are left out: sentencepiece takes it for a space only at the ends.
    write_spm("spm-unknown", train(lines, vocab_size=500, character_coverage=0.99, **most),
              False, True, [t for t in texts if "\u2581" not in t][1::2])


# ---- Unigram

# NFKC's results for a few characters: full-width letters, ligatures, a circled number.
RULES = {"\uff21": "A", "\uff42": "b", "\ufb01": "fi", "\ufb00": "ff", "\u2460": "1",
         "e\u0301": "\u00e9", "\u3000": " ", "\u00a0": " ", "\u200b": ""}


def write_unigram():
    texts = [t for t in TRICKY + texts_of_models() if "\0" not in t and "<" not in t]
    lines = [line for t in texts for line in t.splitlines() if line.strip() and max(line) < "\u0250"]
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as rules:
        for a, b in RULES.items():
            rules.write(" ".join(f"{ord(c):X}" for c in a) + "\t"
                        + " ".join(f"{ord(c):X}" for c in b) + "\n")
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, model_type="unigram",
            normalization_rule_tsv=rules.name, vocab_size=300, character_coverage=0.99,
            max_sentence_length=1 << 16, minloglevel=2, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    w = gguf.GGUFWriter(os.path.join(DATA, "unigram.gguf"), "toy")
    ids = range(sp.vocab_size())
    w.add_tokenizer_model("t5")
    w.add_token_list([sp.id_to_piece(i) for i in ids])
    w.add_token_scores([sp.get_score(i) for i in ids])
    w.add_token_types([token_type(sp, i) for i in ids])
    w.add_eos_token_id(1)
    w.add_unk_token_id(2)
    w.add_pad_token_id(0)
    w.add_add_space_prefix(True)
    w.add_remove_extra_whitespaces(True)
    w.add_precompiled_charsmap(proto.normalizer_spec.precompiled_charsmap)
    write_keys(w)
    more = ["".join(RULES), "x\uff21\uff42 \ufb01ne \ufb00\u2460", "  a  b  ",
            "cafe\u0301 \u3000\u00a0 a\u200bb"]
    # Texts with the mark are left out: sentencepiece takes it for a space only at the ends.
    samples = [(t, sp.encode(t)) for t in more + texts[::2] if "\u2581" not in t]
    write_samples("unigram", [(t, ids, sp.decode(ids)) for t, ids in samples])


# ---- WordPiece

def phantom(token):
    """Returns the token as in GGUF files: a mark before the beginning of a word, and no "##"."""
    if token.startswith("[") and token.endswith("]"):
        return token
    return token[2:] if token.startswith("##") else "\u2581" + token


def spelled(token):
    """Returns the token as in tokenizer.json."""
    if token.startswith("[") and token.endswith("]"):
        return token
    return token[1:] if token.startswith("\u2581") else "##" + token


def bert_vocabulary(texts):
    """Returns the existing file's vocabulary, since each training makes another one."""
    path = os.path.join(DATA, "bert.gguf")
    if os.path.exists(path):
        tokens = gguf.GGUFReader(path).fields["tokenizer.ggml.tokens"]
        return {spelled(tokens.contents(i)): i for i in range(len(tokens.data))}
    t = BertWordPieceTokenizer(lowercase=True)
    t.train_from_iterator(texts, vocab_size=1200, min_frequency=2, limit_alphabet=300,
                          show_progress=False)
    return t.get_vocab()


def write_bert_gguf(t):
    tokens = [t.id_to_token(i) for i in range(t.get_vocab_size())]
    w = gguf.GGUFWriter(os.path.join(DATA, "bert.gguf"), "toy")
    w.add_tokenizer_model("bert")
    w.add_token_list([phantom(token) for token in tokens])
    w.add_token_types([3 if token.startswith("[") and token.endswith("]") else 1
                       for token in tokens])
    w.add_unk_token_id(t.token_to_id("[UNK]"))
    w.add_sep_token_id(t.token_to_id("[SEP]"))
    w.add_pad_token_id(t.token_to_id("[PAD]"))
    w.add_bos_token_id(t.token_to_id("[CLS]"))
    w.add_mask_token_id(t.token_to_id("[MASK]"))
    write_keys(w)


def write_bert_samples(name, t, texts):
    encoded = [(text, t.encode(text, add_special_tokens=False).ids) for text in texts]
    write_samples(name, [(text, ids, t.decode(ids)) for text, ids in encoded])


def write_bert():
    # Texts with the mark that files put before pieces that begin a word are left out.
    texts = [t for t in TRICKY + texts_of_models()
             if not set(t) & {"\0", "[", "\u2581"}]
    vocabulary = bert_vocabulary(texts)
    more = odd_texts(200) + ["x" * 100, "y" * 101, "\ufffd a\tb\u0007c", "\u200d\u00ad soft"]
    t = BertWordPieceTokenizer(vocabulary, lowercase=True)
    write_bert_gguf(t)
    t.save(os.path.join(DATA, "bert.tokenizer.json"), pretty=False)
    write_bert_samples("bert", t, texts + more)
    t = BertWordPieceTokenizer(vocabulary, lowercase=False, strip_accents=True,
                               handle_chinese_chars=False)
    t.model.max_input_chars_per_word = 8
    t.decoder = WordPiece(prefix="##", cleanup=False)
    t.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP] [SEP]",
        special_tokens=[(name, t.token_to_id(name)) for name in ("[CLS]", "[SEP]")])
    t.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    t.save(os.path.join(DATA, "bert-cased.tokenizer.json"), pretty=False)
    write_bert_samples("bert-cased", t, texts + more + ["a [MASK]b  [mask] [SEP]", "a [ MASK ]"])


# ---- odd texts

ODD = ["😀👍🏽👨‍👩‍👧🇫🇷✓☺️", "漢字かなカナ한국어ㄱ中", "0123456789٣४½Ⅷ²", " \t\n\r\u00a0\u2003\u3000\u0085\u200b",
       "e\u0301a\u0308\u0323क्षेไทย\u0e49", "abcXYZßİıſΩ", "'s't're've'll'd'm", "!?.,;:-_()[]{}<>|`~@#$%^&*+=/\\\"'",
       "–—…“”‘’«»„。、！？"]


def odd_texts(n):
    random.seed(7)
    return ["".join(random.choice(random.choice(ODD)) for _ in range(random.randint(1, 24)))
            for _ in range(n)]


def write_odd():
    texts = odd_texts(400)
    cuts = {name: [pieces(pre, t) for t in texts] for name, pre in
            (("roberta-bpe", GPT_2), ("modern-bert", GPT_2), ("qwen2", CUTS["qwen2"]))}
    with open(os.path.join(DATA, "odd.json"), "w", encoding="utf-8") as f:
        rows = ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}"
                          for k, v in cuts.items())
        f.write('{"texts":%s,\n"cuts":{\n%s}}\n' % (json.dumps(texts, ensure_ascii=False), rows))


os.makedirs(DATA, exist_ok=True)
write_cuts()
write_all_spm()
write_unigram()
write_bert()
write_odd()
