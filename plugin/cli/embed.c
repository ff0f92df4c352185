/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe embed: the embeddings of texts, as f32 [texts, dimensions].
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/cli/cli.h"
#include "plugin/cli/prompt_file.h"
#include "plugin/pipeline/embedder.h"
#include "plugin/pipeline/prompt.h"
#include "plugin/program_util/json_out.h"
#include "plugin/program_util/npy.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/number.h"

struct args {
    struct xm_cli_target target; /* first: the common options */
    struct xm_cli_texts prompts;
    const char *file, *pooling, *out;
    uint64_t dimensions; /* 0: the model's width */
};

/* clang-format off */
#define AT(member) offsetof(struct args, member)
static const struct xm_cli_option options[] = {
    XM_CLI_GROUP("The texts and the result", "xemoe embed model.gguf -f lines.txt -o embeddings.npy"),
    { 'p', "prompt",     XM_CLI_TEXTS,  AT(prompts),    "TEXT", "a text; may be given several times" },
    { 'f', "file",       XM_CLI_WORD,   AT(file),       "FILE", "a file with one text per line; a line in quotes is a JSON string; -: standard input" },
    XM_CLI_POOLING_ROW(AT(pooling)),
    { 0,   "dimensions", XM_CLI_COUNT,  AT(dimensions), "N",    "keep the first N dimensions, scaled to length 1 again; default: all" },
    XM_CLI_NPY_ROW(AT(out), "a line of numbers for each text"),
};
#undef AT
/* clang-format on */

struct work {
    const struct args *a;
    const struct xm_cli_model *m;
    struct xm_prompt_lines lines;
    struct xm_token_list *ids; /* [lines.n], owned */
    float *rows;               /* [lines.n][dimensions], owned */
    uint64_t dimensions;
};

/* ---- the texts ---- */

static enum xm_status
read_texts(const struct args *a, struct xm_prompt_lines *out, struct xm_error *err)
{
    struct xm_strbuf text = {0};
    enum xm_status s = XM_OK;
    for (size_t i = 0; i < a->prompts.n && s == XM_OK; i++)
        s = xm_prompt_lines_add(out, a->prompts.list[i], strlen(a->prompts.list[i]), err);
    if (a->file && s == XM_OK)
        s = xm_prompt_file_read(a->file, &text, err);
    if (a->file && s == XM_OK)
        s = xm_prompt_lines_split(&text, xm_prompt_file_name(a->file), out, err);
    if (s == XM_OK)
        xm_prompt_lines_say_blank(out);
    xm_strbuf_free(&text);
    return s;
}

/* Prints "lines.txt, line 3: why", or "text 2: why". */
static int
refuse_text(const struct work *w, size_t i, const char *why)
{
    const struct xm_prompt_line *l = &w->lines.list[i];
    return l->number ? xm_cli_usage("%s, line %zu: %s", w->lines.name, l->number, why)
                     : xm_cli_usage("text %zu: %s", i + 1, why);
}

static int
encode_text(struct work *w, size_t i)
{
    const uint64_t context = w->m->package->facts.context;
    const struct xm_strbuf *text = &w->lines.list[i].text;
    const struct xm_prompt prompt = {
        .kind = XM_PROMPT_TEXT, .text = xm_strbuf_text(text), .n = text->n};
    struct xm_error err = {0};
    char sentence[XM_CLI_WARNING];
    if (xm_prompt_encode(w->m->package, &prompt, xm_cli_vocabulary(w->m), &w->ids[i],
                         &err) != XM_OK)
        return xm_cli_failed(&err);
    if (w->ids[i].n == 0)
        return refuse_text(w, i, "the text is empty");
    if (context == 0 || w->ids[i].n <= context)
        return XM_EXIT_OK;
    snprintf(sentence, sizeof(sentence),
             "it has %zu tokens, but the model was trained for %" PRIu64, w->ids[i].n,
             context);
    return refuse_text(w, i, sentence);
}

static int
encode(struct work *w)
{
    struct xm_error err = {0};
    int code = XM_EXIT_OK;
    w->ids = xm_calloc(w->lines.n, sizeof(*w->ids));
    if (!w->ids) {
        xm_no_memory(&err, "token ids");
        return xm_cli_failed(&err);
    }
    for (size_t i = 0; i < w->lines.n && code == XM_EXIT_OK; i++)
        code = encode_text(w, i);
    return code;
}

/* ---- the result ---- */

static enum xm_status
print_json(const struct work *w, enum xm_pooling pooling, struct xm_error *err)
{
    struct xm_json_out j;
    const char *name = pooling == XM_POOLING_MEAN ? "mean" : "last";
    xm_json_begin(&j);
    xm_json_add_text(&j, NULL, "pooling", name, strlen(name));
    xm_json_add_whole(&j, NULL, "dimensions", w->dimensions);
    yyjson_mut_val *list = xm_json_add_array(&j, NULL, "texts");
    for (size_t i = 0; i < w->lines.n; i++) {
        yyjson_mut_val *o = xm_json_add_object(&j, list, NULL);
        xm_json_add_whole(&j, o, "tokens", w->ids[i].n);
        yyjson_mut_val *row = xm_json_add_array(&j, o, "embedding");
        for (uint64_t k = 0; k < w->dimensions; k++)
            xm_json_add_real(&j, row, NULL, (double)w->rows[i * w->dimensions + k]);
    }
    const enum xm_status s = xm_json_print(&j, err);
    xm_json_end(&j);
    return s;
}

static void
print_text(const struct work *w)
{
    for (size_t i = 0; i < w->lines.n; i++)
        for (uint64_t k = 0; k < w->dimensions; k++)
            printf("%.7g%c", (double)w->rows[i * w->dimensions + k],
                   k + 1 == w->dimensions ? '\n' : ' ');
}

static enum xm_status
write_rows(const struct work *w, enum xm_pooling pooling, struct xm_error *err)
{
    if (w->a->out)
        XM_TRY(xm_npy_write(w->a->out, w->rows, w->lines.n, w->dimensions, err));
    if (w->a->target.json)
        return print_json(w, pooling, err);
    if (!w->a->out)
        print_text(w);
    return XM_OK;
}

/* ---- the run ---- */

static enum xm_status
run(struct work *w, struct xm_embedder *e, enum xm_pooling pooling, struct xm_error *err)
{
    w->rows = xm_calloc(w->lines.n * (size_t)w->dimensions, sizeof(*w->rows));
    if (!w->rows)
        return xm_no_memory(err, "the embeddings");
    xm_cli_catch_interrupt(xm_embedder_request(e));
    xm_progress_show("reading %zu text%s", w->lines.n, xm_plural(w->lines.n));
    const enum xm_status s =
        xm_embedder_run(e, w->ids, w->lines.n, w->dimensions, w->rows, err);
    xm_cli_release_interrupt();
    xm_progress_clear();
    return s == XM_OK ? write_rows(w, pooling, err) : s;
}

static int
run_model(struct work *w)
{
    struct xm_embedder *e = NULL;
    enum xm_pooling pooling;
    struct xm_error err = {0};
    int code = encode(w);
    if (code != XM_EXIT_OK)
        return code;
    if (xm_cli_pooling(w->m->package, w->a->pooling, &pooling, &err) != XM_OK ||
        xm_embedder_create(w->m->compiled, pooling, &e, &err) != XM_OK)
        return xm_cli_failed(&err);
    const uint64_t width = xm_embedder_width(e);
    w->dimensions = w->a->dimensions ? w->a->dimensions : width;
    if (w->dimensions > width)
        code =
            xm_cli_usage("option --dimensions is %" PRIu64 ", but the model has %" PRIu64,
                         w->dimensions, width);
    else
        code = run(w, e, pooling, &err) == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
    xm_embedder_destroy(e);
    return code;
}

static int
embed(const struct args *a)
{
    struct work w = {.a = a};
    struct xm_cli_model m;
    struct xm_error err = {0};
    int code = read_texts(a, &w.lines, &err) == XM_OK ? XM_EXIT_OK : xm_cli_failed(&err);
    if (code == XM_EXIT_OK && w.lines.n == 0)
        code = xm_cli_usage("%s contains no text", xm_prompt_file_name(a->file));
    if (code == XM_EXIT_OK)
        code = xm_cli_model_open(&m, &a->target, NULL);
    if (code == XM_EXIT_OK) {
        w.m = &m;
        code = run_model(&w);
        xm_cli_model_close(&m);
    }
    for (size_t i = 0; w.ids && i < w.lines.n; i++)
        xm_token_list_free(&w.ids[i]);
    xm_free(w.ids);
    xm_free(w.rows);
    xm_prompt_lines_free(&w.lines);
    return code;
}

int
xm_cli_embed(int argc, char **argv)
{
    static const struct xm_cli_spec spec = {
        .usage = "xemoe embed MODEL -p TEXT | -f FILE [-o FILE.npy] [options]",
        .about = "Computes an embedding of each text: the hidden state of its last "
                 "token, or the\nmean over all tokens, as the model's files say, scaled "
                 "to length 1. Any model\nthat generates text gives embeddings, but only "
                 "those of models trained for\nembeddings represent meaning well. 'xemoe "
                 "serve' answers /v1/embeddings.\n",
        XM_CLI_TARGET_AND(options),
    };
    struct args a = {0};
    bool done;
    const int code = xm_cli_begin(&spec, argc, argv, &a, &done);
    if (done)
        return code;
    if (a.prompts.n == 0 && !a.file)
        return xm_cli_usage("which texts? Give -p TEXT, or -f FILE with one text per "
                            "line");
    a.target.embeds = XM_CLI_EMBEDS;
    a.target.needs_tokenizer = "embed needs it, so put the file beside the model";
    const int refused = xm_cli_check_npy(a.out);
    return refused == XM_EXIT_OK ? embed(&a) : refused;
}
