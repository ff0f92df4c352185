/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /v1/embeddings: computes a vector of length 1 for each input, which is a text or a list of
 * token ids.
 *
 * The transport's thread checks the request and tokenizes it; the queue's thread computes the
 * embeddings (embedding_queue.h) and answers.
 */
#include <inttypes.h>
#include <string.h>

#include "plugin/server/openai.h"

enum {
    MOST_INPUTS = 2048,    /* limit of OpenAI's API */
    MOST_TOKENS = 300000,  /* of all inputs; limit of OpenAI's API */
    MOST_NUMBERS = 1 << 22 /* of an answer: about 90 MB of JSON */
};

struct embeddings {
    struct xm_exchange *x; /* owns this work */
    struct xm_served *model;
    struct xm_token_list *inputs; /* owned */
    size_t n, room;
    uint64_t tokens;     /* of all inputs */
    uint64_t dimensions; /* 0: the model's width */
    bool is_base64;
    struct xm_embedding_job job;
};

static void
free_embeddings(void *work)
{
    struct embeddings *w = work;
    for (size_t i = 0; i < w->n; i++)
        xm_token_list_free(&w->inputs[i]);
    xm_free(w->inputs);
    xm_free(w);
}

/* Called with the exchange's lock. */
static void
cancel(void *work)
{
    struct embeddings *w = work;
    xm_embedding_queue_cancel(w->model->embeddings, &w->job);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Adds the base64 of n numbers: f32, little-endian. */
static void
add_base64(struct xm_json_out *j, yyjson_mut_val *o, const float *x, uint64_t n)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct xm_strbuf text = {0};
    const uint64_t bytes = n * sizeof(float);
    for (uint64_t at = 0; at < bytes; at += 3) {
        uint32_t three = 0;
        char four[4];
        for (uint64_t k = at; k < at + 3; k++) {
            uint32_t bits = 0;
            if (k < bytes)
                memcpy(&bits, &x[k / sizeof(float)], sizeof(bits));
            three = three << 8 | (bits >> 8 * (k % sizeof(float)) & 0xff);
        }
        for (uint64_t k = 0; k < 4; k++)
            four[k] = at + k > bytes ? '=' : digits[three >> (18 - 6 * k) & 63];
        xm_strbuf_add_n(&text, four, sizeof(four));
    }
    j->failed |= !xm_strbuf_ok(&text);
    xm_openai_strbuf(j, o, "embedding", &text);
    xm_strbuf_free(&text);
}

static void
add_numbers(struct xm_json_out *j, yyjson_mut_val *o, const float *x, uint64_t n)
{
    yyjson_mut_val *list = xm_json_add_array(j, o, "embedding");
    for (uint64_t i = 0; i < n; i++)
        xm_json_add_real(j, list, NULL, (double)x[i]);
}

static void
print(const struct embeddings *w, const float *rows, uint64_t dimensions,
      struct xm_json_out *j)
{
    xm_openai_text(j, NULL, "object", "list");
    yyjson_mut_val *list = xm_json_add_array(j, NULL, "data");
    for (size_t i = 0; i < w->n; i++) {
        yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
        xm_openai_text(j, o, "object", "embedding");
        xm_json_add_whole(j, o, "index", i);
        (w->is_base64 ? add_base64 : add_numbers)(j, o, rows + i * dimensions,
                                                  dimensions);
    }
    xm_openai_text(j, NULL, "model", w->model->name);
    yyjson_mut_val *usage = xm_json_add_object(j, NULL, "usage");
    xm_json_add_whole(j, usage, "prompt_tokens", w->tokens);
    xm_json_add_whole(j, usage, "total_tokens", w->tokens);
}

static bool
check_dimensions(const struct embeddings *w, uint64_t dimensions, uint64_t width,
                 struct xm_refusal *r)
{
    if (dimensions > width)
        return xm_refuse(r, 400, "dimensions", "invalid_value",
                         "'dimensions' is %" PRIu64
                         ", but the model's embeddings have %" PRIu64,
                         dimensions, width);
    return w->n <= MOST_NUMBERS / dimensions ||
           xm_refuse(
               r, 400, "input", "out_of_range",
               "%zu embeddings of %" PRIu64
               " dimensions have more than %d numbers in all: request fewer at once",
               w->n, dimensions, MOST_NUMBERS);
}

/* Makes the answer's JSON. */
static bool
make(const struct embeddings *w, struct xm_embedder *e, struct xm_json_out *j,
     struct xm_refusal *r)
{
    const uint64_t width = xm_embedder_width(e),
                   dimensions = w->dimensions ? w->dimensions : width;
    struct xm_error why = {0};
    if (!check_dimensions(w, dimensions, width, r))
        return false;
    float *rows = xm_malloc(w->n * (size_t)dimensions * sizeof(*rows));
    if (!rows)
        return xm_refuse(r, 503, NULL, NULL, "out of memory for the embeddings");
    if (xm_embedder_run(e, w->inputs, w->n, dimensions, rows, &why) == XM_OK)
        print(w, rows, dimensions, j);
    else if (why.status == XM_CANCELLED)
        xm_refuse(r, 503, NULL, NULL, "the server is stopping");
    else
        xm_refuse_for(r, &why);
    xm_free(rows);
    return r->status == 0;
}

/* Called by the queue's thread. */
static void
run(struct xm_embedder *e, const struct xm_error *why, void *ctx)
{
    const struct embeddings *w = ctx;
    struct xm_exchange *x = w->x;
    struct xm_json_out j;
    struct xm_refusal r = {0};
    xm_json_begin(&j);
    const bool good = e ? make(w, e, &j, &r) : xm_refuse_at(&r, "model", NULL, why);
    if (good) {
        xm_metrics_add_embeddings(&w->model->metrics, w->n, w->tokens);
        xm_answer_json(x, &j);
    } else {
        xm_json_end(&j);
        xm_refusal_answer(&r, x);
    }
    xm_exchange_unref(x); /* may free the work */
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool
check_input(struct embeddings *w, size_t n, const char *where, struct xm_refusal *r)
{
    const uint64_t context = w->model->options.context;
    if (n == 0)
        return xm_refuse(r, 400, where, "invalid_value", "the input is empty");
    if (context && n > context)
        return xm_refuse(r, 400, where, "context_length_exceeded",
                         "the input has %zu tokens, but the context is %" PRIu64, n,
                         context);
    w->tokens += n;
    return w->tokens <= MOST_TOKENS ||
           xm_refuse(r, 400, "input", "out_of_range",
                     "the inputs have more than %d tokens together", MOST_TOKENS);
}

static bool
add_input(void *ctx, const struct xm_prompt *prompt, const char *where,
          struct xm_refusal *r)
{
    struct embeddings *w = ctx;
    struct xm_error why = {0};
    if (w->n == w->room) {
        const size_t room = 2 * w->room + 1;
        struct xm_token_list *grown = xm_realloc(w->inputs, room * sizeof(*grown));
        if (!grown)
            return xm_refuse(r, 503, NULL, NULL, "out of memory for the inputs");
        w->inputs = grown;
        w->room = room;
    }
    struct xm_token_list *ids = &w->inputs[w->n++];
    *ids = (struct xm_token_list){NULL, 0, 0};
    if (xm_prompt_encode(w->model->package, prompt, w->model->vocabulary, ids, &why) !=
        XM_OK)
        return xm_refuse_at(r, where, "invalid_value", &why);
    return check_input(w, ids->n, where, r);
}

static bool
read_form(yyjson_val *body, bool *is_base64, struct xm_refusal *r)
{
    yyjson_val *form;
    if (!xm_wish_text(body, "encoding_format", &form, r))
        return false;
    const char *name = form ? yyjson_get_str(form) : "float";
    *is_base64 = strcmp(name, "base64") == 0;
    return *is_base64 || strcmp(name, "float") == 0 ||
           xm_refuse_value(r, "encoding_format", form, "float or base64");
}

static bool
read_request(struct embeddings *w, yyjson_val *body, struct xm_refusal *r)
{
    yyjson_val *user;
    const struct xm_openai_prompts inputs = {"input",  "inputs",  MOST_INPUTS,
                                             w->model, add_input, w};
    return xm_wish_text(body, "user", &user, r) && read_form(body, &w->is_base64, r) &&
           xm_wish_count(body, "dimensions", 1, INT32_MAX, &w->dimensions, r) &&
           xm_openai_read_prompts(&inputs, body, r);
}

static struct embeddings *
create(struct xm_exchange *x, struct xm_served *m, struct xm_refusal *r)
{
    struct embeddings *w = m->embeddings ? xm_calloc(1, sizeof(*w)) : NULL;
    if (!w) {
        if (m->embeddings)
            xm_refuse(r, 503, NULL, NULL, "out of memory for the request");
        else
            xm_refuse(r, 400, "model", "unsupported_parameter",
                      "this model cannot compute embeddings");
        return NULL;
    }
    w->x = x;
    w->model = m;
    w->job.run = run;
    w->job.ctx = w;
    xm_exchange_lock(x);
    x->work = w;
    x->free_work = free_embeddings;
    xm_exchange_unlock(x);
    return w;
}

/* Submits the job under the lock, so that a client that leaves meanwhile waits. */
static bool
submit(struct embeddings *w, struct xm_refusal *r)
{
    struct xm_error why = {0};
    xm_exchange_lock(w->x);
    bool good = !w->x->is_gone || xm_refuse(r, 503, NULL, NULL, "the client has gone");
    if (good) {
        xm_exchange_ref(w->x);
        w->x->cancel = cancel;
        good = xm_embedding_queue_submit(w->model->embeddings, &w->job, &why) == XM_OK ||
               xm_refuse_for(r, &why);
        if (!good) {
            w->x->cancel = NULL;
            xm_refs_drop(&w->x->refs); /* not the last reference: the caller has one */
        }
    }
    xm_exchange_unlock(w->x);
    return good;
}

static bool
begin(struct xm_exchange *x, struct xm_refusal *r)
{
    yyjson_doc *doc = NULL;
    if (!xm_body_read(x, &doc, r))
        return false;
    yyjson_val *body = yyjson_doc_get_root(doc);
    struct xm_served *m = xm_body_model(x, body, r);
    struct embeddings *w = m ? create(x, m, r) : NULL;
    const bool good = w && read_request(w, body, r);
    yyjson_doc_free(doc);
    return good && submit(w, r);
}

void
xm_answer_embeddings(struct xm_exchange *x)
{
    struct xm_refusal r = {0};
    if (!begin(x, &r))
        xm_refusal_answer(&r, x);
}
