/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-tokenizers that tokenizer.ggml.pre names: the regular expressions of the tokenizers from
 * which the files were made, as these spell them. Each expression cuts the pieces that those before
 * it made, at its matches and between them.
 *
 * Two differences from the published tokenizers remain. Some of them normalize texts (NFC for qwen2
 * and modern-bert), but no key says so, and here texts are not changed. Letters and digits are
 * those of the Unicode version of PCRE2, which may lack characters that the published tokenizers
 * know.
 */
#include "plugin/text/gguf/gguf_parts.h"
#include "runtime/util/utf8.h"

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define CUTS(...)  ((const char *const[]){__VA_ARGS__, NULL})

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORD        "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SIGNS       " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define PATH_SIGNS  " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define BLANK       "\\s+(?!\\S)|\\s+"
#define BLANKS      "\\s*[\\r\\n]+|" BLANK

/* Words, cut between a lower-case letter and a following capital. */
#define LARGE "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(ending)                                                                    \
    "[^\\r\\n\\p{L}\\p{N}]?" LARGE "*" SMALL "+" ending "|"                              \
    "[^\\r\\n\\p{L}\\p{N}]?" LARGE "+" SMALL "*" ending

#define MIXED(digits)  CONTRACTION "|" WORD "|" digits "|" SIGNS "|" BLANKS
#define GPT_4O(digits) CASED(CONTRACTION "?") "|" digits "|" PATH_SIGNS "|" BLANKS

/* Letters with the sign before them, signs, and white space: for the text that is left after
 * cutting out digits. */
#define ASCII_SIGN     "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
#define DEEPSEEK_WORDS ASCII_SIGN "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
#define DEEPSEEK_V3    DEEPSEEK_WORDS " ?[\\p{P}\\p{S}]+[\\r\\n]*|" BLANKS
#define CJK            "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
#define CJK_HANGUL     "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"

/* Letters of alphabets that have upper and lower case. */
#define ALPHABETS                                                                        \
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293"      \
    "\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a"       \
    "\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556"            \
    "\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b"     \
    "\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d"     \
    "\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe"       \
    "\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"     \
    "\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128"        \
    "\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184"       \
    "\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b"      \
    "\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17"     \
    "\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"               \
    "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"                    \
    "\U000118a0-\U000118df\U0001e900-\U0001e943"
#define WIDE_SIGNS "!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002"

/* Letters of scripts other than Han. */
#define NO_HAN     "(?!\\p{Han})"
#define LARGE_KIMI "(?:" NO_HAN LARGE ")"
#define SMALL_KIMI "(?:" NO_HAN SMALL ")"
#define WORD_KIMI  "[^\\r\\n\\p{L}\\p{N}]?"
#define KIMI                                                                             \
    "\\p{Han}+|" WORD_KIMI LARGE_KIMI "*" SMALL_KIMI "+" CONTRACTION                     \
    "?|" WORD_KIMI LARGE_KIMI "+" SMALL_KIMI "*" CONTRACTION "?|"                        \
    "\\p{N}{1,3}|" SIGNS "|" BLANKS

/* Han, kana, Lao, Khmer, Burmese, Hangul, and the vowels, signs and digits of Thai. */
#define EAST_ASIAN                                                                       \
    "\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f"     \
    "\u2f00-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f"     \
    "\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff"

/* Anything but white space, "(", "|", commas and marks that end a sentence. */
#define BLOOM " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"

/* White space in runs of powers of two. */
#define HALVED_BLANKS                                                                    \
    "\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|"     \
    "\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}"

#define LINES "[^\\n]+|[\\n]+"

/* clang-format off */
static const struct xm_gguf_pre_tokenizer rows[] = {
    { NAMES("gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4",
            "gigachat", "a.x-4.0", "mellum", "modern-bert", "roberta-bpe", "jina-es", "jina-de",
            "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code"),
      CUTS(xm_byte_level_pattern), 0 },
    { NAMES("default"),
      CUTS("[\\p{P}\\$\\+<=>\\^~\\|]+", xm_byte_level_pattern, "\\p{N}+", "[0-9][0-9][0-9]"), 0 },
    { NAMES("falcon"),
      CUTS("[\\p{P}\\$\\+<=>\\^~\\|`]+", xm_byte_level_pattern, "[0-9][0-9][0-9]"), 0 },
    { NAMES("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
            "mellum2"),
      CUTS("\\p{N}", xm_byte_level_pattern), 0 },
    { NAMES("qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez", "kormo", "f2llmv2",
            "solar-open", "grok-2"),
      CUTS(MIXED("\\p{N}")), 0 },
    { NAMES("qwen35"),
      CUTS(CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
           " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" BLANKS), 0 },
    { NAMES("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
            "lfm2", "jina-v5-nano"),
      CUTS(MIXED("\\p{N}{1,3}")), XM_GGUF_WHOLE_WORDS | XM_GGUF_BEGINS },
    { NAMES("glm4", "glm5"),
      CUTS(MIXED("\\p{N}{1,3}")), XM_GGUF_WHOLE_WORDS },
    { NAMES("dbrx", "smaug-bpe", "chatglm-bpe"),
      CUTS(MIXED("\\p{N}{1,3}")), 0 },
    { NAMES("jais-2"),
      CUTS(CONTRACTION "|" WORD "|\\p{N}{1,3}|" SIGNS "|\\s*[\\r\\n]+|" HALVED_BLANKS), 0 },
    { NAMES("k2-horizon"),
      CUTS(CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}\u200c\u200d]+|\\p{N}{1,3}|"
           SIGNS "|" BLANKS), 0 },
    { NAMES("ufakzeka"),
      CUTS(WORD "|\\p{N}|" SIGNS "|" BLANKS), 0 },
    { NAMES("minicpm5"),
      CUTS("\\p{N}{1,3}", MIXED("\\p{N}+")), XM_GGUF_WHOLE_WORDS },
    { NAMES("laguna"),
      CUTS(LINES, MIXED("\\p{N}")), 0 },
    { NAMES("gpt-4o", "llama4", "minimax-m2", "kanana2", "talkie"),
      CUTS(GPT_4O("\\p{N}{1,3}")), 0 },
    { NAMES("granite-embed-multi-97m"),
      CUTS(GPT_4O("\\p{N}{1,3}")), XM_GGUF_WHOLE_WORDS },
    { NAMES("tiny_aya", "cohere2moe"),
      CUTS("\\d{1,3}(?=(?:\\d{3})*\\b)", GPT_4O("\\p{N}{1,3}")), 0 },
    { NAMES("youtu"),
      CUTS("[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c"
           "\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|" CJK,
           GPT_4O("\\p{N}")), XM_GGUF_WHOLE_WORDS },
    { NAMES("tekken"),
      CUTS(CASED("") "|\\p{N}|" PATH_SIGNS "|" BLANKS), XM_GGUF_WHOLE_WORDS | XM_GGUF_BEGINS },
    { NAMES("kimi-k2"),
      CUTS(KIMI), 0 },
    { NAMES("deepseek-llm"),
      CUTS("[\\r\\n]", "\\s?[" ALPHABETS "]+", "\\s?[" WIDE_SIGNS "]+", "\\s+$", CJK_HANGUL,
           "\\p{N}"), 0 },
    { NAMES("deepseek-coder"),
      CUTS("[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK_HANGUL, "\\p{N}"), 0 },
    { NAMES("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"),
      CUTS("\\p{N}{1,3}", CJK, DEEPSEEK_V3), 0 },
    { NAMES("spark2_5"),
      CUTS("\\p{N}{1,3}", CJK, DEEPSEEK_WORDS " ?[\\p{P}\\p{S}]+|[\\r\\n]|" BLANK, "\\p{N}"), 0 },
    { NAMES("afmoe"),
      CUTS("\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))", "[" EAST_ASIAN "]+", DEEPSEEK_V3), 0 },
    { NAMES("superbpe"),
      CUTS("\\p{N}+", "(?=(\\d{3})+(?!\\d))"), 0 },
    { NAMES("bloom", "poro-chat", "gpt3-finnish"),
      CUTS(BLOOM), 0 },
    { NAMES("viking"),
      CUTS(BLOOM, "\\p{N}"), 0 },
    { NAMES("chameleon"),
      CUTS("<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )",
           "\\p{N}", "[\\p{P}!-/:-@\\[-`{-~]", xm_byte_level_pattern), XM_GGUF_BEGINS },
    { NAMES("bailingmoe", "bailingmoe2", "llada-moe"),
      CUTS("'(?i:[sdmt]|ll|ve|re)|" WORD "|\\p{N}|" SIGNS "|\\s*[\\r\\n]|" BLANK), 0 },
    { NAMES("seed-coder"),
      CUTS(CONTRACTION "|" WORD "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" BLANKS), 0 },
    { NAMES("exaone-moe"),
      CUTS(CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}|"
           " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|" BLANK), 0 },
    { NAMES("gemma4", "granite-embed-multi-311m"),
      CUTS(LINES), XM_GGUF_MARKS_SPACES | XM_GGUF_ALWAYS_BEGINS | XM_GGUF_WHOLE_NEWLINES },
    { NAMES("sarvam-moe"),
      CUTS(LINES), XM_GGUF_MARKS_SPACES },
    { NAMES("whitespace"),
      NULL, XM_GGUF_DROPS_SPACES },
};
/* clang-format on */

static enum xm_status
refuse(struct xm_slice name, struct xm_error *err)
{
    struct xm_strbuf known = {0};
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++)
        xm_strbuf_printf(&known, "%s%s", i ? ", " : "", rows[i].names[0]);
    xm_fail(err, XM_UNSUPPORTED,
            "key 'tokenizer.ggml.pre': the pre-tokenizer '%s' is not supported; "
            "supported are %s, and their aliases",
            xm_utf8_shown(name).text, xm_strbuf_text(&known));
    xm_strbuf_free(&known);
    return XM_UNSUPPORTED;
}

enum xm_status
xm_gguf_find_pre_tokenizer(struct xm_slice name, const struct xm_gguf_pre_tokenizer **out,
                           struct xm_error *err)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        for (const char *const *n = rows[i].names; *n; n++) {
            if (xm_slice_equal(name, xm_slice_of(*n, strlen(*n)))) {
                *out = &rows[i];
                return XM_OK;
            }
        }
    }
    return refuse(name, err);
}
