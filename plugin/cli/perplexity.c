/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe perplexity: exp of the mean of -log p(token | tokens before it). Like llama-perplexity,
 * over the second half of each chunk of a text; or over rows of token ids, all but the first token
 * of each. The distributions of the chunks' second halves can be stored in a file, and compared
 * with those of another model.
 */
#include "plugin/cli/perplexity.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "plugin/cli/model_id.h"
#include "plugin/cli/prompt_file.h"
#include "plugin/logits/kld.h"
#include "plugin/pipeline/token_runner.h"
#include "plugin/program_util/progress.h"
#include "plugin/text/log_sum_exp.h"
#include "runtime/util/log.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/number.h"

struct args {
    struct xm_cli_target target; /* first: the common options */
    const char *prompt, *file, *ids, *base;
    uint64_t context, chunks, rows; /* 0: not given */
    bool by_row, divergence;
};

enum { CONTEXT = 512 }; /* default of -c, in tokens */

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The text", "xemoe perplexity model.gguf -f text.txt -c 512 --chunks 8"),
    { 'f', "file",               XM_CLI_WORD,  AT(file),       "FILE", "a file with the text; -: standard input" },
    { 'p', "prompt",             XM_CLI_TEXT,  AT(prompt),     "TEXT", "the text" },
    { 0,   "ids",                XM_CLI_WORD,  AT(ids),        "IDS",  "the text as token ids: 1,2,3 or @FILE (an .npy or text file)" },
    { 'c', "context",            XM_CLI_BOUND, AT(context),    "N",    "tokens in a chunk (512); 0: the context for which the model was trained", "ctx-size" },
    { 0,   "chunks",             XM_CLI_COUNT, AT(chunks),     "N",    "evaluate only the first N chunks" },
    { 0,   "by-row",             XM_CLI_FLAG,  AT(by_row),     NULL,   "evaluate each row of --ids from an empty KV cache, and score all of its tokens but the first" },
    { 0,   "rows",               XM_CLI_COUNT, AT(rows),       "N",    "with --by-row: evaluate only the first N rows" },
    XM_CLI_GROUP("Two models", "xemoe perplexity model.gguf --kl-divergence-base base.kld --kl-divergence"),
    { 0,   "kl-divergence-base", XM_CLI_WORD,  AT(base),       "FILE", "file to which the log-probabilities of all tokens are written" },
    { 0,   "kl-divergence",      XM_CLI_FLAG,  AT(divergence), NULL,   "compare the model with the log-probabilities in that file, which also holds the text" },
};
#undef AT
/* clang-format on */

/* ---- the sum ----------------------------------------------------------------------- */

struct sum {
    double nll, nll2; /* sums of -log p and of its square */
    uint64_t tokens;
};

static void
add_token(struct sum *sum, const float *logits, uint64_t vocabulary, int32_t id)
{
    const double nll = xm_log_sum_exp(logits, vocabulary) - (double)logits[id];
    sum->nll += nll;
    sum->nll2 += nll * nll;
    sum->tokens++;
}

static struct xm_estimate
perplexity_of(const struct sum *sum)
{
    return xm_estimate_exp(xm_estimate_of(sum->nll, sum->nll2, sum->tokens, 2));
}

static void
add_json(const struct sum *sum, struct xm_json_out *j)
{
    const struct xm_estimate ppl = perplexity_of(sum);
    xm_json_add_real(j, NULL, "ppl", ppl.value);
    xm_json_add_real(j, NULL, "ppl_error", ppl.error);
    xm_json_add_real(j, NULL, "nll", log(ppl.value));
    xm_json_add_whole(j, NULL, "tokens", sum->tokens);
}

/* ---- by row ------------------------------------------------------------------------ */

static enum xm_status
add_row(struct xm_token_runner *r, const struct xm_token_list *ids, struct sum *sum,
        struct xm_error *err)
{
    uint64_t vocabulary;
    xm_token_runner_truncate(r, 0);
    XM_TRY(xm_token_runner_feed(r, ids->ids, ids->n, ids->n, err));
    const float *logits = xm_cli_logits_of(r, ids->n, &vocabulary, err);
    if (!logits)
        return err->status;
    for (size_t i = 1; i < ids->n; i++)
        add_token(sum, logits + (i - 1) * vocabulary, vocabulary, ids->ids[i]);
    return XM_OK;
}

static enum xm_status
add_rows(const struct xm_cli_model *m, const struct xm_cli_ids *ids, uint64_t n,
         struct sum *sum, struct xm_error *err)
{
    struct xm_token_runner *r = NULL;
    XM_TRY(xm_token_runner_create(m->compiled, &r, err));
    xm_cli_catch_interrupt(xm_token_runner_request(r));
    enum xm_status s = XM_OK;
    for (size_t i = 0; i < n && s == XM_OK; i++) {
        xm_progress_show("row %zu of %" PRIu64, i + 1, n);
        s = xm_cli_interrupted() ? xm_fail(err, XM_CANCELLED, "stopped before row %zu", i)
                                 : add_row(r, &ids->rows[i], sum, err);
    }
    xm_cli_release_interrupt();
    xm_progress_clear();
    xm_token_runner_destroy(r);
    return s;
}

static enum xm_status
print_rows(const struct args *a, const struct sum *sum, struct xm_error *err)
{
    struct xm_json_out j;
    if (!a->target.json) {
        printf("perplexity %.6f over %" PRIu64 " token%s\n", perplexity_of(sum).value,
               sum->tokens, xm_plural(sum->tokens));
        return XM_OK;
    }
    xm_json_begin(&j);
    add_json(sum, &j);
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

static int
run_rows(const struct xm_cli_model *m, const struct args *a)
{
    struct xm_error err = {0};
    struct xm_cli_ids ids = {0};
    struct sum sum = {0};
    int code = xm_cli_ids_read(a->ids, xm_compiled_vocabulary(m->compiled), &ids);
    if (code != XM_EXIT_OK)
        return code;
    uint64_t n = a->rows && a->rows < ids.n ? a->rows : ids.n;
    enum xm_status s = add_rows(m, &ids, n, &sum, &err);
    xm_cli_ids_free(&ids);
    if (s == XM_OK && sum.tokens == 0)
        return xm_cli_usage("perplexity needs a row of at least two tokens");
    if (s == XM_OK)
        s = print_rows(a, &sum, &err);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}

/* ---- a text in chunks -------------------------------------------------------------- */

struct scoring {
    const struct args *args;
    struct sum sum;
    struct xm_kld_writer *writer; /* NULL: distributions are not stored */
};

static enum xm_status
score(void *ctx, uint32_t chunk, uint32_t i, const float *logits, uint64_t vocabulary,
      int32_t next, struct xm_error *err)
{
    struct scoring *s = ctx;
    (void)chunk;
    (void)i;
    add_token(&s->sum, logits, vocabulary, next);
    return s->writer ? xm_kld_writer_add(s->writer, logits, err) : XM_OK;
}

static void
print_running(void *ctx, uint32_t n)
{
    const struct scoring *s = ctx;
    printf("[%" PRIu32 "]%.4f,", n, perplexity_of(&s->sum).value);
}

static enum xm_status
print_estimate(const struct scoring *s, const struct xm_chunks *c, struct xm_error *err)
{
    const struct xm_estimate ppl = perplexity_of(&s->sum);
    struct xm_json_out j;
    if (!s->args->target.json) {
        printf("Final estimate: PPL = %.4f +/- %.5f\n", ppl.value, ppl.error);
        return XM_OK;
    }
    xm_json_begin(&j);
    add_json(&s->sum, &j);
    xm_json_add_whole(&j, NULL, "chunks", c->n);
    xm_json_add_whole(&j, NULL, "context", c->context);
    enum xm_status status = xm_json_print(&j, err);
    xm_json_end(&j);
    return status;
}

static enum xm_status
begin_file(const struct xm_cli_model *m, const struct args *a, const struct xm_chunks *c,
           struct xm_kld_writer *w, struct xm_error *err)
{
    const uint64_t vocabulary = xm_compiled_vocabulary(m->compiled);
    const struct xm_kld_base sizes = {
        .context = c->context, .vocabulary = (uint32_t)vocabulary, .chunks = c->n};
    if (vocabulary > INT32_MAX)
        return xm_fail(err, XM_UNSUPPORTED,
                       "the size of the model's vocabulary is not known");
    return xm_kld_writer_begin(w, a->base, &sizes, c->tokens, err);
}

static enum xm_status
score_chunks(const struct xm_cli_model *m, const struct args *a,
             const struct xm_chunks *c, struct xm_error *err)
{
    struct xm_kld_writer w = {0};
    struct scoring s = {.args = a, .writer = a->base ? &w : NULL};
    const struct xm_scorer scorer = {.position = score,
                                     .chunk = a->target.json ? NULL : print_running,
                                     .leaves_line_open = true,
                                     .ctx = &s};
    enum xm_status status = a->base ? begin_file(m, a, c, &w, err) : XM_OK;
    if (status == XM_OK)
        status = xm_chunks_run(m, c, &scorer, err);
    if (status == XM_OK && a->base)
        status = xm_kld_writer_end(&w, err);
    xm_kld_writer_free(&w);
    return status == XM_OK ? print_estimate(&s, c, err) : status;
}

/* Reads all rows of --ids, joined, or the text's tokens. */
static int
read_tokens(const struct xm_cli_model *m, const struct args *a,
            const struct xm_strbuf *text, struct xm_token_list *out)
{
    struct xm_error err = {XM_NO_MEMORY, "out of memory for token ids"};
    struct xm_cli_ids ids = {0};
    if (!a->ids)
        return xm_cli_prompt(m, NULL, xm_strbuf_text(text), text->n, out);
    int code = xm_cli_ids_read(a->ids, xm_compiled_vocabulary(m->compiled), &ids);
    for (size_t i = 0; i < ids.n && code == XM_EXIT_OK; i++) {
        if (!xm_token_list_add_n(out, ids.rows[i].ids, ids.rows[i].n))
            code = xm_cli_failed(&err);
    }
    xm_cli_ids_free(&ids);
    return code;
}

static void
warn_of_context(const struct xm_cli_model *m, uint64_t context)
{
    char warning[XM_CLI_WARNING];
    if (xm_cli_beyond_training(context, m->package->facts.context, warning))
        xm_log(XM_LOG_WARNING, "%s", warning);
}

static int
run_text(const struct xm_cli_model *m, const struct args *a,
         const struct xm_token_list *tokens)
{
    const uint64_t given = xm_cli_context(a->context, m->package->facts.context);
    const uint64_t context = given ? given : CONTEXT;
    struct xm_error err = {0};
    if (tokens->n < 2 * context)
        return xm_cli_usage(
            "the text has %zu token%s, but at least two chunks of %" PRIu64
            " tokens are needed: give a longer text, or a smaller -c",
            tokens->n, xm_plural(tokens->n), context);
    const uint64_t most = tokens->n / context;
    struct xm_chunks c = {
        .tokens = tokens->ids,
        .context = (uint32_t)context,
        .n = (uint32_t)(a->chunks && a->chunks < most ? a->chunks : most)};
    c.has_first = xm_model_first_token(m, &c.first);
    warn_of_context(m, context);
    return score_chunks(m, a, &c, &err) == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}

/* ---- against another's distributions ----------------------------------------------- */

struct comparing {
    const struct xm_kld_base *base;
    struct xm_kld kld;
};

static enum xm_status
compare(void *ctx, uint32_t chunk, uint32_t i, const float *logits, uint64_t vocabulary,
        int32_t next, struct xm_error *err)
{
    struct comparing *c = ctx;
    struct xm_kld_row row;
    XM_TRY(xm_kld_base_row(c->base, chunk, i, &row, err));
    return xm_kld_add(&c->kld, logits, (uint32_t)vocabulary, &row, next, err);
}

static void
put(struct xm_strbuf *text)
{
    fputs(xm_strbuf_text(text), stdout);
    xm_strbuf_free(text);
}

static void
print_compared(void *ctx, uint32_t n)
{
    const struct comparing *c = ctx;
    struct xm_strbuf text = {0};
    if (n == 1)
        xm_kld_print_chunk(&c->kld, 0, &text);
    xm_kld_print_chunk(&c->kld, n, &text);
    put(&text);
}

static enum xm_status
print_divergence(const struct args *a, struct comparing *c, uint32_t chunks,
                 struct xm_error *err)
{
    struct xm_strbuf text = {0};
    if (!a->target.json) {
        xm_kld_print(&c->kld, &text);
        put(&text);
        return XM_OK;
    }
    struct xm_json_out j;
    xm_json_begin(&j);
    xm_kld_add_json(&c->kld, &j);
    xm_json_add_whole(&j, NULL, "tokens", c->kld.n);
    xm_json_add_whole(&j, NULL, "chunks", chunks);
    xm_json_add_whole(&j, NULL, "context", c->base->context);
    enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

/* Returns a copy of the file's tokens, which may be at unaligned addresses. */
static int32_t *
copy_tokens(const struct xm_kld_base *b, uint32_t chunks)
{
    int32_t *tokens = xm_calloc((size_t)chunks * b->context, sizeof(*tokens));
    for (uint32_t c = 0; c < chunks && tokens; c++) {
        for (uint32_t i = 0; i < b->context; i++)
            tokens[(size_t)c * b->context + i] = xm_kld_base_token(b, c, i);
    }
    return tokens;
}

static enum xm_status
compare_chunks(const struct xm_cli_model *m, const struct args *a,
               const struct xm_kld_base *base, struct xm_error *err)
{
    struct comparing comparing = {.base = base};
    const struct xm_scorer scorer = {.position = compare,
                                     .chunk = a->target.json ? NULL : print_compared,
                                     .ctx = &comparing};
    struct xm_chunks c = {.context = base->context,
                          .n = a->chunks && a->chunks < base->chunks ? (uint32_t)a->chunks
                                                                     : base->chunks};
    c.has_first = xm_model_first_token(m, &c.first);
    int32_t *tokens = copy_tokens(base, c.n);
    c.tokens = tokens;
    warn_of_context(m, c.context);
    enum xm_status s =
        tokens ? xm_chunks_run(m, &c, &scorer, err) : xm_no_memory(err, "tokens");
    if (s == XM_OK)
        s = print_divergence(a, &comparing, c.n, err);
    xm_kld_free(&comparing.kld);
    xm_free(tokens);
    return s;
}

static enum xm_status
check_base(const struct xm_cli_model *m, const struct xm_kld_base *base,
           struct xm_error *err)
{
    const uint64_t vocabulary = xm_compiled_vocabulary(m->compiled);
    return vocabulary == base->vocabulary
               ? XM_OK
               : xm_fail(err, XM_INVALID,
                         "the file has log-probabilities for a vocabulary of %" PRIu32
                         " tokens, but the model has %" PRIu64
                         ": they belong to another model",
                         base->vocabulary, vocabulary);
}

static int
run_compared(struct args *a, const struct xm_mapped_file *f)
{
    struct xm_kld_base base;
    struct xm_cli_model m;
    struct xm_error err = {0};
    enum xm_status s = xm_kld_base_read(f->bytes, f->n_bytes, &base, &err);
    if (s == XM_OK && a->context && a->context != base.context)
        return xm_cli_usage("%s has chunks of %" PRIu32 " tokens: omit -c", a->base,
                            base.context);
    int code = s == XM_OK ? xm_cli_model_open(&m, &a->target, NULL) : XM_EXIT_OK;
    if (code != XM_EXIT_OK)
        return code;
    if (s == XM_OK) {
        s = check_base(&m, &base, &err);
        if (s == XM_OK)
            s = compare_chunks(&m, a, &base, &err);
        xm_cli_model_close(&m);
    }
    if (s == XM_INVALID)
        xm_error_prefix(&err, "%.150s", a->base);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}

/* ---- the command ------------------------------------------------------------------- */

/* Refuses to replace an existing file unless it is such a file. */
static int
check_output(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0 ||
        xm_kld_base_is_file(path))
        return XM_EXIT_OK;
    return xm_cli_usage(
        "%s exists and is not a file of --kl-divergence-base, so it is not replaced",
        path);
}

static int
check(const struct args *a)
{
    struct xm_error err = {0};
    const int texts = (a->prompt != NULL) + (a->file != NULL) + (a->ids != NULL);
    if (a->divergence && !a->base)
        return xm_cli_usage("compare with what? Give --kl-divergence-base FILE");
    if (a->divergence && (texts || a->by_row))
        return xm_cli_usage(
            "--kl-divergence uses the text of its file: omit -f, -p, --ids and --by-row");
    if (a->by_row && (!a->ids || a->base || a->context || a->chunks))
        return xm_cli_usage("--by-row needs --ids, and cannot be combined with -c, "
                            "--chunks or --kl-divergence-base");
    if (a->rows && !a->by_row)
        return xm_cli_usage("--rows can only be used with --by-row");
    if (!a->divergence && texts != 1)
        return xm_cli_usage("which text? Give one of -f FILE, -p TEXT and --ids IDS");
    if (a->context && a->context < XM_KLD_LEAST_CONTEXT)
        return xm_cli_usage("option --context takes at least %d tokens",
                            XM_KLD_LEAST_CONTEXT);
    if (a->base && !a->divergence && check_output(a->base) != XM_EXIT_OK)
        return XM_EXIT_USAGE;
    return xm_cli_check_context(a->context, &err) == XM_OK ? XM_EXIT_OK
                                                           : xm_cli_usage("%s", err.text);
}

static int
read_text(const struct args *a, struct xm_strbuf *text)
{
    struct xm_error err = {0};
    if (a->ids)
        return xm_cli_ids_check(a->ids, false);
    if (a->prompt)
        xm_strbuf_add(text, a->prompt);
    else if (xm_prompt_file_read(a->file, text, &err) != XM_OK)
        return xm_cli_failed(&err);
    if (text->n)
        return XM_EXIT_OK;
    return a->prompt ? xm_cli_usage("the text is empty")
                     : xm_cli_usage("%s is empty: there is nothing to score", a->file);
}

static int
run_given(struct args *a)
{
    struct xm_cli_model m;
    struct xm_strbuf text = {0};
    struct xm_token_list tokens = {0};
    a->target.needs_tokenizer = a->ids ? NULL : XM_CLI_IDS_INSTEAD;
    a->target.check = xm_cli_ids_check_vocabulary;
    a->target.check_ctx = a->ids;
    int code = read_text(a, &text);
    if (code == XM_EXIT_OK)
        code = xm_cli_model_open(&m, &a->target, NULL);
    if (code == XM_EXIT_OK) {
        if (!a->by_row)
            code = read_tokens(&m, a, &text, &tokens);
        if (code == XM_EXIT_OK)
            code = a->by_row ? run_rows(&m, a) : run_text(&m, a, &tokens);
        xm_cli_model_close(&m);
    }
    xm_token_list_free(&tokens);
    xm_strbuf_free(&text);
    return code;
}

static int
run_divergence(struct args *a)
{
    struct xm_mapped_file f = {0};
    struct xm_error err = {0};
    if (xm_mapped_file_open(a->base, &f, &err) != XM_OK)
        return xm_cli_failed(&err);
    const int code = run_compared(a, &f);
    xm_mapped_file_close(&f);
    return code;
}

int
xm_cli_perplexity(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe perplexity MODEL (-f FILE | -p TEXT | --ids IDS) [options]",
        .about =
            "Computes the perplexity of a text as llama-perplexity does: in chunks of "
            "-c\ntokens, each from an empty KV cache and with the model's begin token "
            "first; the\nsecond half of each chunk is scored. --kl-divergence-base "
            "writes the model's\nlog-probabilities of these tokens to a file in the "
            "format of llama-perplexity;\nwith --kl-divergence another model, or other "
            "kernels, are compared with them.\n",
        XM_CLI_TARGET_AND(options),
    };
    struct args a = {0};
    bool done;
    int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    code = check(&a);
    if (code != XM_EXIT_OK)
        return code;
    return a.divergence ? run_divergence(&a) : run_given(&a);
}
