/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the GenAI C API: the structs behind the handles, and functions that several files share.
 *
 * A failure stores its sentence for ov_get_last_err_msg(); a failure of a pipeline also writes it
 * to the log. Missing arguments do neither.
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

/* Stores the sentence and writes it to the log. Returns UNKNOW_EXCEPTION, or OK if *err has no
 * failure. */
ov_status_e xm_genai_status(const struct xm_error *err);

/* Writes a text to a caller's buffer. *output_size is the buffer's size and becomes the size of the
 * text with its NUL. output NULL: only sets the size. Returns false if the buffer is too small: it
 * is unchanged, and the sentence is stored. */
bool xm_genai_give(const struct xm_strbuf *text, char *output, size_t *output_size);

/* ---- JSON (json_container.c) --------------------------------------------------------- */

/* A JSON value without white space. The first character is that of its type. */
struct ov_genai_json_container_opaque {
    struct xm_strbuf text;
};

/* Makes a container of `text`, JSON without white space, whose memory it takes. NULL: no memory. */
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
/* Appends the template's variables besides the messages as a JSON object: "tools", if there are
 * any, and the members of the extra context. */
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
void xm_genai_config_clear(ov_genai_generation_config *c); /* frees the members */
/* Makes a copy in *to, which is overwritten; after a failure it holds nothing to free. */
enum xm_status xm_genai_config_copy(const ov_genai_generation_config *from,
                                    ov_genai_generation_config *to, struct xm_error *err);
/* Reads a generation_config.json. XM_NOT_FOUND: the file does not exist. */
enum xm_status xm_genai_config_read(const char *path, ov_genai_generation_config *c,
                                    struct xm_error *err);
enum xm_status xm_genai_config_add_stop_id(ov_genai_generation_config *c, int64_t id,
                                           struct xm_error *err);
bool xm_genai_config_has_stop_id(const ov_genai_generation_config *c, int64_t id);
/* generation_rules.c: gets and sets a numeric field of generation_fields.def by its name. SIZE_MAX,
 * which means "not set", is returned as 0. */
double xm_genai_config_number(const ov_genai_generation_config *c, const char *name);
void xm_genai_config_set_number(ov_genai_generation_config *c, const char *name,
                                double x);
/* XM_INVALID: the values of the fields are not possible together. */
enum xm_status xm_genai_config_check(const ov_genai_generation_config *c,
                                     struct xm_error *err);

/* ---- metrics (perf_metrics.c) -------------------------------------------------------- */

/* Measured durations in milliseconds. */
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

void xm_genai_metrics_clear(ov_genai_perf_metrics *m); /* frees the members */
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
    pthread_mutex_t lock; /* makes calls run one after the other */
    bool is_orphan; /* the caller freed it during a call, which destroys it at its end */
    struct xm_core *core;
    struct xm_package *package;
    struct xm_compiled *compiled;
    struct xm_session *session; /* NULL: not created yet, or a chat has ended */
    /* runs several texts of one prompt; NULL as `session` */
    struct xm_scheduler *parallel;
    ov_genai_generation_config config;
    /* draft tokens by prompt lookup for greedy texts by default (property prompt_lookup) */
    bool looks_up;
    double load_ms;
    ov_genai_chat_history *chat; /* NULL: no chat is in progress */
};

/* The arguments and results of a call of generate. */
struct xm_genai_call {
    ov_genai_llm_pipeline *pipe;
    const ov_genai_generation_config *config; /* NULL: the pipeline's */
    const streamer_callback *streamer;        /* NULL: none           */
    struct xm_prompt prompt;
    double start; /* xm_now() at the start of the call */
    /* out */
    ov_genai_decoded_results *results; /* owned by the caller */
    bool is_cancelled;                 /* by the streamer     */
    size_t echoed; /* number of bytes of the echoed prompt in each text */
};

/* llm_run.c: checks the config and generates the texts. The caller holds the pipeline's lock. */
enum xm_status xm_genai_run(struct xm_genai_call *call, struct xm_error *err);
/* Copies the stop ids and the eos_token_id of `from`, each only if `c` has none. */
enum xm_status xm_genai_config_inherit(ov_genai_generation_config *c,
                                       const ov_genai_generation_config *from,
                                       struct xm_error *err);

/* llm_pipeline.c: locks the pipeline. Fails if this thread already holds the lock, because a
 * streamer called a function of its own pipeline. */
bool xm_genai_lock(const ov_genai_llm_pipeline *pipe, struct xm_error *err);
void xm_genai_unlock(const ov_genai_llm_pipeline *pipe); /* also destroys an orphan */

#ifdef __cplusplus
}
#endif
#endif
