/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the files beside an IR: the configuration, and a tokenizer, byte-level BPE without merges.
 */
#include <inttypes.h>
#include <stdio.h>

#include "plugin/writers/synth.h"
#include "runtime/util/new_file.h"

static enum xm_status
write_text(const char *folder, const char *name, const struct xm_strbuf *text,
           struct xm_error *err)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return xm_write_text_file(path, text, err);
}

uint32_t
xm_synth_byte_character(uint32_t byte)
{
    bool printable =
        (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    uint32_t n = 256;
    if (printable)
        return byte;
    for (uint32_t b = 0; b < byte; b++)
        n += !((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174);
    return n;
}

/* Writes tokenizer.json: a token for each byte, <|endoftext|>, then made-up words up to the
 * vocabulary's size. */
static void
print_tokenizer(const struct xm_decoder *d, struct xm_strbuf *out)
{
    xm_strbuf_printf(
        out, "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":256,\"content\":"
             "\"<|endoftext|>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
             "\"normalized\":false,\"special\":true}],\"normalizer\":null,"
             "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
             "\"trim_offsets\":true,\"use_regex\":true},\"post_processor\":null,"
             "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
             "\"trim_offsets\":true,\"use_regex\":true},\"model\":{\"type\":\"BPE\","
             "\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
             "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,"
             "\"ignore_merges\":false,\"vocab\":{");
    for (uint32_t i = 0; i < XM_SYNTH_END; i++)
        xm_strbuf_printf(out, "\"\\u%04x\":%u,", xm_synth_byte_character(i), i);
    xm_strbuf_add(out, "\"<|endoftext|>\":256");
    for (uint32_t i = XM_SYNTH_END + 1; i < d->vocabulary; i++)
        xm_strbuf_printf(out, ",\"word%" PRIu32 "\":%" PRIu32, i, i);
    xm_strbuf_add(out, "},\"merges\":[]}}\n");
}

static void
print_config(const struct xm_decoder *d, struct xm_strbuf *out)
{
    const struct xm_decoder_attention *a = &d->attention[XM_ATTENTION_FULL];
    xm_strbuf_printf(out,
                     "{\"model_type\":\"%s\",\"hidden_size\":%" PRIu32
                     ",\"num_hidden_layers\":%" PRIu32 ",\"num_attention_heads\":%" PRIu32
                     ",\"num_key_value_heads\":%" PRIu32 ",\"head_dim\":%" PRIu32
                     ",\"vocab_size\":%" PRIu32 ",\"max_position_embeddings\":%" PRIu32
                     ",\"eos_token_id\":%d",
                     d->arch->config, d->hidden, d->n_layers, d->layer[0].heads,
                     d->layer[0].kv_heads, a->head_dim, d->vocabulary, d->context,
                     XM_SYNTH_END);
    if (d->experts)
        xm_strbuf_printf(out,
                         ",\"num_experts\":%" PRIu32 ",\"num_experts_per_tok\":%" PRIu32
                         ",\"moe_intermediate_size\":%" PRIu32,
                         d->experts, d->experts_used, d->expert_ffn);
    xm_strbuf_add(out, "}\n");
}

enum xm_status
xm_synth_write_side_files(const struct xm_synth *s, const char *folder)
{
    struct xm_strbuf tokenizer = {0}, config = {0}, generation = {0};
    print_tokenizer(&s->d, &tokenizer);
    print_config(&s->d, &config);
    xm_strbuf_printf(&generation, "{\"eos_token_id\":%d}\n", XM_SYNTH_END);
    enum xm_status status = write_text(folder, "tokenizer.json", &tokenizer, s->err);
    if (status == XM_OK)
        status = write_text(folder, "config.json", &config, s->err);
    if (status == XM_OK)
        status = write_text(folder, "generation_config.json", &generation, s->err);
    xm_strbuf_free(&tokenizer);
    xm_strbuf_free(&config);
    xm_strbuf_free(&generation);
    return status;
}
