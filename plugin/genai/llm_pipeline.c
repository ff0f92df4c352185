/* SPDX-License-Identifier: Apache-2.0
 *
 * Pipelines: a model with its tokenizer and chat template, on a device, and the default config.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "plugin/genai/genai.h"
#include "runtime/util/clock.h"

enum { MOST_ARGUMENTS = 1024 }; /* a larger number is probably not a count */

/* ---- the lock ---------------------------------------------------------------------------- */

/* Removes const: the lock and the end of a pipeline may change behind a const handle. */
static ov_genai_llm_pipeline *
whole(const ov_genai_llm_pipeline *pipe)
{
    return (ov_genai_llm_pipeline *)(uintptr_t)pipe;
}

bool
xm_genai_lock(const ov_genai_llm_pipeline *pipe, struct xm_error *err)
{
    if (pthread_mutex_lock(&whole(pipe)->lock) != EDEADLK)
        return true;
    xm_fail(err, XM_BUSY, "a streamer cannot call its own pipeline");
    return false;
}

/* Makes a mutex that detects relocking by its owner. */
static bool
init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t kind;
    if (pthread_mutexattr_init(&kind) != 0)
        return false;
    const bool ok = pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK) == 0 &&
                    pthread_mutex_init(lock, &kind) == 0;
    pthread_mutexattr_destroy(&kind);
    return ok;
}

/* ---- the end of a pipeline ----------------------------------------------------------------- */

static void
destroy(ov_genai_llm_pipeline *pipe)
{
    ov_genai_chat_history_free(pipe->chat);
    xm_session_destroy(pipe->session);
    xm_scheduler_destroy(pipe->parallel);
    xm_package_close(pipe->package);
    xm_compiled_unref(pipe->compiled);
    xm_core_destroy(pipe->core);
    xm_genai_config_clear(&pipe->config);
    pthread_mutex_destroy(&pipe->lock);
    xm_free(pipe);
}

void
xm_genai_unlock(const ov_genai_llm_pipeline *pipe)
{
    const bool is_orphan = pipe->is_orphan;
    pthread_mutex_unlock(&whole(pipe)->lock);
    if (is_orphan)
        destroy(whole(pipe));
}

/* ---- properties -------------------------------------------------------------------------- */

struct properties {
    struct xm_property list[MOST_ARGUMENTS / 2];
    uint32_t n;
    bool looks_up;
};

static enum xm_status
take_bool(const char *key, const char *value, bool *out, struct xm_error *err)
{
    static const char *const spellings[] = {"NO",   "YES",   "false",
                                            "true", "False", "True"};
    for (size_t i = 0; i < XM_ARRAY_LEN(spellings); i++) {
        *out = i % 2 == 1;
        if (strcmp(value, spellings[i]) == 0)
            return XM_OK;
    }
    return xm_fail(err, XM_INVALID, "%s is '%.80s', expected YES or NO", key, value);
}

/* Takes the properties of GenAI itself, which devices do not know. */
static enum xm_status
take_own(struct properties *p, const char *key, const char *value, bool *is_own,
         struct xm_error *err)
{
    *is_own = true;
    if (strcmp(key, "ATTENTION_BACKEND") == 0)
        return strcmp(value, "PA") == 0 || strcmp(value, "SDPA") == 0
                   ? XM_OK
                   : xm_fail(err, XM_INVALID, "%s is '%.80s', expected PA or SDPA", key,
                             value);
    if (strcmp(key, "prompt_lookup") == 0)
        return take_bool(key, value, &p->looks_up, err);
    *is_own = false;
    /* the only property whose value is not text */
    return strcmp(key, "CACHE_ENCRYPTION_CALLBACKS") != 0
               ? XM_OK
               : xm_fail(err, XM_UNSUPPORTED, "%s is not supported", key);
}

static ov_status_e
take_arguments(struct properties *p, size_t n, va_list args, struct xm_error *err)
{
    bool is_own;
    for (size_t i = 0; i < n / 2; i++) {
        const char *key = va_arg(args, const char *);
        const char *value = va_arg(args, const char *);
        if (!key || !value)
            return INVALID_C_PARAM;
        if (take_own(p, key, value, &is_own, err) != XM_OK)
            return xm_genai_status(err);
        if (!is_own)
            p->list[p->n++] = (struct xm_property){key, value};
    }
    return OK;
}

/* ---- the model's config -------------------------------------------------------------------- */

/* Reads generation_config.json beside an OpenVINO model. */
static enum xm_status
read_file(const struct xm_package *p, ov_genai_generation_config *c, struct xm_error *err)
{
    struct xm_strbuf path = {0};
    struct xm_error why = {0};
    XM_TRY(xm_package_folder(p->path, &path, err));
    xm_strbuf_add(&path, "/generation_config.json");
    enum xm_status s = xm_strbuf_ok(&path)
                           ? xm_genai_config_read(xm_strbuf_text(&path), c, &why)
                           : xm_no_memory(&why, "a path");
    xm_strbuf_free(&path);
    if (s != XM_NOT_FOUND)
        return s == XM_OK ? XM_OK : xm_fail(err, s, "%s", why.text);
    xm_genai_config_init(c);
    return XM_OK;
}

/* Takes the sampling that a GGUF file recommends. */
static void
take_recommendation(const struct xm_generation_config *from,
                    ov_genai_generation_config *c)
{
    const struct xm_sampling *s = &from->sampling;
    xm_genai_config_init(c);
    if (from->max_tokens)
        c->max_new_tokens = (size_t)from->max_tokens;
    c->do_sample = s->temperature > 0.0f;
    for (size_t i = 0; i < XM_N_SAMPLING; i++) {
        const struct xm_sampling_row *row = &xm_sampling_rows[i];
        if (row->genai && xm_sampling_is_number(row) && (!row->draws || c->do_sample) &&
            xm_sampling_get(s, row) != row->unsaid)
            xm_genai_config_set_number(c, row->genai, xm_sampling_get(s, row));
    }
}

/* Removes assistant settings of the model's file: they are meant for a second model that drafts
 * tokens, and the caller has not asked for one. */
static void
drop_assistance(ov_genai_generation_config *c)
{
    c->assistant_confidence_threshold = 0.0f;
    c->num_assistant_tokens = c->max_ngram_size = 0;
}

/* Its files say where a text ends; where they do not, the tokenizer knows. */
static enum xm_status
find_config(ov_genai_llm_pipeline *p, struct xm_error *err)
{
    const struct xm_generation_config *g = &p->package->generation;
    ov_genai_generation_config *c = &p->config;
    if (p->package->reader == &xm_package_openvino)
        XM_TRY(read_file(p->package, c, err));
    else
        take_recommendation(g, c);
    drop_assistance(c);
    if (c->n_stop_ids > 0)
        return XM_OK;
    const size_t n = g->n_said ? g->n_said : g->n_eos;
    for (size_t i = 0; i < n; i++)
        XM_TRY(xm_genai_config_add_stop_id(c, g->eos[i], err));
    c->eos_token_id = n ? g->eos[0] : -1;
    return XM_OK;
}

/* ---- life ---------------------------------------------------------------------------------- */

static enum xm_status
read_text_side(ov_genai_llm_pipeline *pipe, struct xm_error *err)
{
    struct xm_package *p = pipe->package;
    struct xm_error why = {0};
    const enum xm_status s = xm_package_read(p, XM_PACKAGE_TOKENIZER, &why);
    if (s == XM_NOT_FOUND)
        return xm_fail(err, s, "'%.200s': there is no %s", p->path, p->reader->tokenizer);
    if (s != XM_OK)
        return xm_fail(err, s, "%s", why.text);
    xm_package_read(p, XM_PACKAGE_FACTS, NULL); /* of which the context is used */
    XM_TRY(xm_package_read(p, XM_PACKAGE_GENERATION, err));
    return find_config(pipe, err);
}

static enum xm_status
open_pipeline(ov_genai_llm_pipeline *p, const char *path, const char *device,
              const struct properties *properties, struct xm_error *err)
{
    const struct xm_compile_options options = {.for_api = true, .sampled_logits = true};
    struct xm_plugin *plugin = NULL;
    struct xm_graph *g = NULL;
    uint32_t index = 0;
    XM_TRY(xm_core_create(&p->core, err));
    XM_TRY(xm_core_find(p->core, device, &plugin, &index, err));
    XM_TRY(xm_package_open(path, &p->package, err));
    /* The graph first, so that a wrong path is an error about the model and not about a tokenizer
     * that is not beside it. */
    XM_TRY(xm_package_read_graph(p->package, NULL, &g, err));
    const enum xm_status s = read_text_side(p, err);
    if (s == XM_OK)
        return xm_core_compile(p->core, g, device, properties->list, properties->n,
                               &options, &p->compiled, err);
    xm_graph_destroy(g);
    return s;
}

static ov_genai_llm_pipeline *
make_pipeline(struct xm_error *err)
{
    ov_genai_llm_pipeline *p = xm_calloc(1, sizeof(*p));
    if (p && init_lock(&p->lock)) {
        xm_genai_config_init(&p->config);
        return p;
    }
    xm_free(p);
    xm_no_memory(err, "a pipeline");
    return NULL;
}

static ov_status_e
create(const char *path, const char *device, const struct properties *properties,
       ov_genai_llm_pipeline **out)
{
    struct xm_error err = {0};
    const double start = xm_now();
    ov_genai_llm_pipeline *p = make_pipeline(&err);
    if (!p)
        return xm_genai_status(&err);
    p->looks_up = properties->looks_up;
    if (open_pipeline(p, path, device, properties, &err) == XM_OK) {
        p->load_ms = (xm_now() - start) * 1000.0;
        if (xm_api_handle_add(p, XM_API_PIPELINE)) {
            *out = p;
            return OK;
        }
        xm_no_memory(&err, "a pipeline");
    }
    destroy(p);
    return xm_genai_status(&err);
}

ov_status_e
ov_genai_llm_pipeline_create(const char *models_path, const char *device,
                             size_t property_args_size, ov_genai_llm_pipeline **pipe, ...)
{
    struct properties properties = {.n = 0};
    struct xm_error err = {0};
    va_list args;
    if (!models_path || !device || !pipe || property_args_size % 2 != 0 ||
        property_args_size > MOST_ARGUMENTS)
        return INVALID_C_PARAM;
    va_start(args, pipe);
    const ov_status_e s = take_arguments(&properties, property_args_size, args, &err);
    va_end(args);
    return s == OK ? create(models_path, device, &properties, pipe) : s;
}

void
ov_genai_llm_pipeline_free(ov_genai_llm_pipeline *pipe)
{
    if (!xm_api_handle_drop(pipe, XM_API_PIPELINE))
        return;
    const bool is_own_run = pthread_mutex_lock(&pipe->lock) == EDEADLK;
    pipe->is_orphan = true;
    if (!is_own_run) /* the run unlocks the pipeline at its end */
        xm_genai_unlock(pipe);
}

/* ---- its config ---------------------------------------------------------------------------- */

ov_status_e
ov_genai_llm_pipeline_get_generation_config(const ov_genai_llm_pipeline *pipe,
                                            ov_genai_generation_config **config)
{
    struct xm_error err = {0};
    ov_genai_generation_config *copy = NULL;
    if (!xm_api_is(pipe, XM_API_PIPELINE) || !config)
        return INVALID_C_PARAM;
    if (ov_genai_generation_config_create(&copy) != OK)
        return UNKNOW_EXCEPTION;
    if (xm_genai_lock(pipe, &err)) {
        xm_genai_config_copy(&pipe->config, copy, &err);
        xm_genai_unlock(pipe);
    }
    if (err.status == XM_OK)
        *config = copy;
    else if (xm_api_handle_drop(copy, XM_API_CONFIG)) /* its members were freed already */
        xm_free(copy);
    return xm_genai_status(&err);
}

ov_status_e
ov_genai_llm_pipeline_set_generation_config(ov_genai_llm_pipeline *pipe,
                                            ov_genai_generation_config *config)
{
    struct xm_error err = {0};
    ov_genai_generation_config copy;
    if (!xm_api_is(pipe, XM_API_PIPELINE) || !xm_api_is(config, XM_API_CONFIG))
        return INVALID_C_PARAM;
    if (!xm_genai_lock(pipe, &err))
        return xm_genai_status(&err);
    if (xm_genai_config_copy(config, &copy, &err) == XM_OK) {
        enum xm_status s = xm_genai_config_inherit(&copy, &pipe->config, &err);
        if (s == XM_OK)
            s = xm_genai_config_check(&copy, &err);
        xm_genai_config_clear(s == XM_OK ? &pipe->config : &copy);
        if (s == XM_OK)
            pipe->config = copy;
    }
    xm_genai_unlock(pipe);
    return xm_genai_status(&err);
}
