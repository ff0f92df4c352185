/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of the GenAI C API: what the handles are, and what its files share.
 *
 * A failure keeps its sentence for ov_get_last_err_msg(), and writes it to the log where it is one
 * of a pipeline. Missing arguments change neither.
 */
#ifndef XM_PLUGIN_GENAI_GENAI_H
#define XM_PLUGIN_GENAI_GENAI_H

#include <pthread.h>

#include "openvino/genai/c/chat_history.h"
#include "openvino/genai/c/generation_config.h"
#include "openvino/genai/c/llm_pipeline.h"
#include "openvino/genai/c/perf_metrics.h"
#include "plugin/api/api.h"
#include "plugin/pipeline/parallel.h"
#include "plugin/pipeline/session.h"
#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keeps the sentence and writes it to the log; UNKNOW_EXCEPTION, or OK where nothing has failed. */
ov_status_e xm_genai_status(const struct xm_error *err);

/* A text by the two calls of the API. *output_size, the buffer's bytes, becomes the bytes of the
 * text with its NUL. False: the buffer is smaller and was left as it was; the sentence is kept. */
bool xm_genai_give(const struct xm_strbuf *text, char *output, size_t *output_size);

/* ---- JSON (json_container.c) --------------------------------------------------------- */

/* A JSON value without white space; its first character tells its type. */
struct ov_genai_json_container_opaque {
    struct xm_strbuf text;
};

/* A container of `text`, JSON without white space, which is moved out of it; NULL: no memory. */
ov_genai_json_container *xm_genai_json_take(struct xm_strbuf *text);

/* ---- histories (chat_history.c) ------------------------------------------------------ */

struct ov_genai_chat_history_opaque {
    struct xm_strbuf *messages; /* owned, [n]; each a JSON object */
    size_t n, capacity;
    struct xm_strbuf tools, extra; /* a JSON array, a JSON object; empty: not set */
};

void xm_genai_history_clear(ov_genai_chat_history *h); /* removes all messages */
void xm_genai_history_pop(ov_genai_chat_history *h);   /* removes the last; n > 0 */
/* Appends {"role":…,"content":…}. */
enum xm_status xm_genai_history_say(ov_genai_chat_history *h, const char *role,
                                    const char *text, size_t n, struct xm_error *err);
/* Appends all messages as a JSON array. */
void xm_genai_history_messages(const ov_genai_chat_history *h, struct xm_strbuf *out);
/* Appends the template's further variables as a JSON object: "tools", if there are any, and the
 * members of the extra context. */
void xm_genai_history_variables(const ov_genai_chat_history *h, struct xm_strbuf *out);

/* ---- configs (genai_config.c) -------------------------------------------------------- */

struct ov_genai_generation_config_opaque {
#define XM_GENAI_SIZE                  size_t
#define XM_GENAI_REAL                  float
#define XM_GENAI_FLAG                  bool
#define FIELD(kind, name, its_default) XM_GENAI_##kind name;
#include "plugin/genai/generation_fields.def"
    StopCriteria stop_criteria;
    int64_t eos_token_id; /* -1: not set */
    int64_t *stop_ids;    /* owned       */
    size_t n_stop_ids, stop_ids_room;
    char **stops; /* owned strings; none is empty */
    size_t n_stops;
};

void xm_genai_config_init(ov_genai_generation_config *c);
void xm_genai_config_clear(ov_genai_generation_config *c); /* frees what it holds */
/* `to` is overwritten, and nothing to be cleared after a failure. */
enum xm_status xm_genai_config_copy(const ov_genai_generation_config *from,
                                    ov_genai_generation_config *to, struct xm_error *err);
/* What a generation_config.json says; XM_NOT_FOUND: there is no such file. */
enum xm_status xm_genai_config_read(const char *path, ov_genai_generation_config *c,
                                    struct xm_error *err);
enum xm_status xm_genai_config_add_stop_id(ov_genai_generation_config *c, int64_t id,
                                           struct xm_error *err);
bool xm_genai_config_has_stop_id(const ov_genai_generation_config *c, int64_t id);
/* generation_rules.c: a field of numbers by its name, of generation_fields.def. A count of
 * SIZE_MAX, which is none, is 0. */
double xm_genai_config_number(const ov_genai_generation_config *c, const char *name);
void xm_genai_config_set_number(ov_genai_generation_config *c, const char *name,
                                double x);
/* Whether its fields go together. */
enum xm_status xm_genai_config_check(const ov_genai_generation_config *c,
                                     struct xm_error *err);

/* ---- metrics (perf_metrics.c) -------------------------------------------------------- */

/* Measured values, milliseconds each. */
struct xm_genai_values {
    double *ms; /* owned */
    size_t n, capacity;
};
bool xm_genai_values_add(struct xm_genai_values *v, double ms); /* false: no memory */

enum xm_genai_measure {
    XM_GENAI_TTFT,
    XM_GENAI_TPOT,
    XM_GENAI_IPOT,
    XM_GENAI_INFERENCE,
    XM_GENAI_GENERATE,
    XM_GENAI_TOKENISE,
    XM_GENAI_DETOKENISE,
    XM_GENAI_TEMPLATE,
    XM_GENAI_N_MEASURES
};

struct ov_genai_perf_metrics_opaque {
    double load_ms;
    size_t generated, input; /* tokens */
    struct xm_genai_values values[XM_GENAI_N_MEASURES];
};

void xm_genai_metrics_clear(ov_genai_perf_metrics *m); /* frees what it holds */
enum xm_status xm_genai_metrics_add(ov_genai_perf_metrics *to,
                                    const ov_genai_perf_metrics *from,
                                    struct xm_error *err);

/* ---- results (decoded_results.c) ----------------------------------------------------- */

struct ov_genai_decoded_results_opaque {
    struct xm_generation_result *texts; /* owned */
    size_t n;
    ov_genai_perf_metrics metrics;
};

/* ---- pipelines (llm_*.c) --------------------------------------------------------------- */

struct ov_genai_llm_pipeline_opaque {
    pthread_mutex_t lock; /* calls come one after the other */
    bool is_orphan; /* freed by the caller during a call, which destroys it at its end */
    struct xm_core *core;
    struct xm_package *package;
    struct xm_compiled *compiled;
    struct xm_session *session;    /* NULL: not created yet, or a chat has ended  */
    struct xm_scheduler *parallel; /* the same for several texts of one prompt    */
    ov_genai_generation_config config;
    /* prompt lookup for greedy texts is on by default (property prompt_lookup) */
    bool looks_up;
    double load_ms;
    ov_genai_chat_history *chat; /* NULL: there is none */
};

/* The arguments and results of a call of generate. */
struct xm_genai_call {
    ov_genai_llm_pipeline *pipe;
    const ov_genai_generation_config *config; /* NULL: the pipeline's */
    const streamer_callback *streamer;        /* NULL: none           */
    struct xm_prompt prompt;
    double start; /* xm_now() when the call came */
    /* out */
    ov_genai_decoded_results *results; /* owned by the caller */
    bool is_cancelled;                 /* by the streamer     */
    size_t echoed; /* bytes of the prompt that each text begins with */
};

/* llm_run.c: checks the config and generates the texts. The caller holds the pipeline's lock. */
enum xm_status xm_genai_run(struct xm_genai_call *call, struct xm_error *err);
/* Takes the stop ids and eos_token_id of `from`, each if `c` has none. */
enum xm_status xm_genai_config_inherit(ov_genai_generation_config *c,
                                       const ov_genai_generation_config *from,
                                       struct xm_error *err);

/* llm_pipeline.c: locks the pipeline. False: this thread holds the lock already, in a streamer. */
bool xm_genai_lock(const ov_genai_llm_pipeline *pipe, struct xm_error *err);
void xm_genai_unlock(const ov_genai_llm_pipeline *pipe); /* and destroys an orphan */

#ifdef __cplusplus
}
#endif
#endif
