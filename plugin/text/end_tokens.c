/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/text/end_tokens.h"

/* clang-format off */
static const struct {
    const char *spelling;
    const char *unless; /* not an end if the tokenizer has this one; NULL: always */
} ends[] = {
    /* end of a document */
    { "<|endoftext|>",          NULL },         /* GPT-2, Qwen, gpt-oss, Phi               */
    { "<|end_of_text|>",        NULL },         /* Llama 3, Granite                        */
    { "</s>",                   NULL },         /* Llama 2, Mistral                        */
    { "<eos>",                  NULL },         /* Gemma                                   */
    { "[EOS]",                  NULL },         /* Kimi                                    */
    { "<\xef\xbd\x9c" "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>", NULL }, /* DeepSeek */
    { "<EOT>",                  NULL },         /* code models: end of a completion */
    /* end of a turn */
    { "<|im_end|>",             NULL },         /* ChatML: Qwen and many more        */
    { "<|eot_id|>",             NULL },         /* Llama 3                           */
    { "<|eom_id|>",             NULL },         /* Llama 3: end of a call of a tool  */
    { "<end_of_turn>",          NULL },         /* Gemma 2 and 3                     */
    { "<turn|>",                NULL },         /* Gemma 4                           */
    { "<|tool_response>",       NULL },         /* Gemma 4: follows a call of a tool */
    { "[e~[",                   NULL },         /* MiniMax                           */
    { "[EOT]",                  NULL },         /* Kimi                              */
    { "<end_of_utterance>",     NULL },         /* SmolVLM                           */
    { "<|return|>",             NULL },         /* gpt-oss: end of an answer         */
    { "<|call|>",               NULL },         /* gpt-oss: end of a call of a tool  */
    /* Phi: end of a turn. gpt-oss: only the end of a message, behind which the next message of the
     * same answer may begin. */
    { "<|end|>",                "<|return|>" },
};
/* clang-format on */
_Static_assert(XM_ARRAY_LEN(ends) == XM_MAX_KNOWN_ENDS, "there is room for each");

static int32_t
special_id(const struct xm_tokenizer *tokenizer, const char *spelling)
{
    int32_t id = xm_tokenizer_id_of(tokenizer, spelling);
    return id >= 0 && xm_tokenizer_is_special(tokenizer, id) ? id : -1;
}

void
xm_generation_config_add_ends(struct xm_generation_config *c,
                              const struct xm_tokenizer *tokenizer)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(ends); i++) {
        int32_t id = special_id(tokenizer, ends[i].spelling);
        if (id < 0 || xm_generation_config_is_eos(c, id) ||
            (ends[i].unless && special_id(tokenizer, ends[i].unless) >= 0))
            continue;
        c->eos[c->n_eos++] = id;
    }
}
