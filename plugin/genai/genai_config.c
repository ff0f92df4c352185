/* SPDX-License-Identifier: Apache-2.0
 *
 * Generation configs. generation_fields.def defines their setters and the members of
 * generation_config.json.
 */
#include <inttypes.h>
#include <string.h>

#include "plugin/genai/genai.h"
#include "plugin/text/generation_file.h"

enum { MOST_STOP_IDS = 4096 }; /* a larger number is probably a mistake */

/* ---- life ---------------------------------------------------------------------------- */

void
xm_genai_config_init(ov_genai_generation_config *c)
{
    *c = (ov_genai_generation_config){
#define FIELD(kind, name, its_default) .name = its_default,
#include "plugin/genai/generation_fields.def"
        .stop_criteria = HEURISTIC,
        .eos_token_id = -1,
    };
}

static void
drop_stops(ov_genai_generation_config *c)
{
    for (size_t i = 0; i < c->n_stops; i++)
        xm_free(c->stops[i]);
    xm_free(c->stops);
    c->stops = NULL;
    c->n_stops = 0;
}

void
xm_genai_config_clear(ov_genai_generation_config *c)
{
    drop_stops(c);
    xm_free(c->stop_ids);
    c->stop_ids = NULL;
    c->n_stop_ids = c->stop_ids_room = 0;
}

/* Replaces the stop strings; NULL and empty strings are skipped. */
static enum xm_status
set_stops(ov_genai_generation_config *c, const char *const *strings, size_t n,
          struct xm_error *err)
{
    char **stops = xm_calloc(n ? n : 1, sizeof(*stops));
    ov_genai_generation_config made = {.stops = stops};
    if (!stops)
        return xm_no_memory(err, "a generation config");
    for (size_t i = 0; i < n; i++) {
        if (!strings[i] || !strings[i][0])
            continue;
        stops[made.n_stops] = xm_strdup(strings[i]);
        if (!stops[made.n_stops]) {
            drop_stops(&made);
            return xm_no_memory(err, "a generation config");
        }
        made.n_stops++;
    }
    drop_stops(c);
    c->stops = stops;
    c->n_stops = made.n_stops;
    return XM_OK;
}

bool
xm_genai_config_has_stop_id(const ov_genai_generation_config *c, int64_t id)
{
    for (size_t i = 0; i < c->n_stop_ids; i++) {
        if (c->stop_ids[i] == id)
            return true;
    }
    return false;
}

enum xm_status
xm_genai_config_add_stop_id(ov_genai_generation_config *c, int64_t id,
                            struct xm_error *err)
{
    if (xm_genai_config_has_stop_id(c, id))
        return XM_OK;
    if (c->n_stop_ids == MOST_STOP_IDS)
        return xm_fail(
            err, XM_INVALID,
            "there are more than %d stop token ids; the first one too many is %" PRId64,
            MOST_STOP_IDS, id);
    int64_t *grown =
        xm_grow(c->stop_ids, &c->stop_ids_room, c->n_stop_ids + 1, sizeof(*grown));
    if (!grown)
        return xm_no_memory(err, "a generation config");
    c->stop_ids = grown;
    c->stop_ids[c->n_stop_ids++] = id;
    return XM_OK;
}

static enum xm_status
set_stop_ids(ov_genai_generation_config *c, const int64_t *ids, size_t n,
             struct xm_error *err)
{
    ov_genai_generation_config made = {0};
    enum xm_status s = XM_OK;
    for (size_t i = 0; i < n && s == XM_OK; i++)
        s = xm_genai_config_add_stop_id(&made, ids[i], err);
    if (s != XM_OK) {
        xm_free(made.stop_ids);
        return s;
    }
    xm_free(c->stop_ids);
    c->stop_ids = made.stop_ids;
    c->n_stop_ids = made.n_stop_ids;
    c->stop_ids_room = made.stop_ids_room;
    return XM_OK;
}

enum xm_status
xm_genai_config_copy(const ov_genai_generation_config *from,
                     ov_genai_generation_config *to, struct xm_error *err)
{
    *to = *from;
    to->stops = NULL;
    to->stop_ids = NULL;
    to->n_stops = to->n_stop_ids = to->stop_ids_room = 0;
    enum xm_status s =
        set_stops(to, (const char *const *)from->stops, from->n_stops, err);
    if (s == XM_OK)
        s = set_stop_ids(to, from->stop_ids, from->n_stop_ids, err);
    if (s != XM_OK)
        xm_genai_config_clear(to);
    return s;
}

ov_status_e
ov_genai_generation_config_create(ov_genai_generation_config **config)
{
    struct xm_error err = {0};
    if (!config)
        return INVALID_C_PARAM;
    ov_genai_generation_config *c = xm_malloc(sizeof(*c));
    if (c && xm_api_handle_add(c, XM_API_CONFIG)) {
        xm_genai_config_init(c);
        *config = c;
        return OK;
    }
    xm_free(c);
    xm_no_memory(&err, "a generation config");
    return xm_genai_status(&err);
}

void
ov_genai_generation_config_free(ov_genai_generation_config *handle)
{
    if (!xm_api_handle_drop(handle, XM_API_CONFIG))
        return;
    xm_genai_config_clear(handle);
    xm_free(handle);
}

/* ---- setters ------------------------------------------------------------------------- */

#define FIELD(kind, name, its_default)                                                   \
    ov_status_e ov_genai_generation_config_set_##name(                                   \
        ov_genai_generation_config *config, XM_GENAI_##kind value)                       \
    {                                                                                    \
        if (!xm_api_is(config, XM_API_CONFIG))                                           \
            return INVALID_C_PARAM;                                                      \
        config->name = value;                                                            \
        return OK;                                                                       \
    }
#include "plugin/genai/generation_fields.def"

ov_status_e
ov_genai_generation_config_set_stop_criteria(ov_genai_generation_config *config,
                                             StopCriteria value)
{
    if (!xm_api_is(config, XM_API_CONFIG))
        return INVALID_C_PARAM;
    config->stop_criteria = value;
    return OK;
}

ov_status_e
ov_genai_generation_config_set_eos_token_id(ov_genai_generation_config *config,
                                            int64_t id)
{
    if (!xm_api_is(config, XM_API_CONFIG))
        return INVALID_C_PARAM;
    config->eos_token_id = id;
    return OK;
}

ov_status_e
ov_genai_generation_config_set_stop_strings(ov_genai_generation_config *config,
                                            const char **strings, size_t count)
{
    struct xm_error err = {0};
    if (!xm_api_is(config, XM_API_CONFIG) || !strings)
        return INVALID_C_PARAM;
    set_stops(config, strings, count, &err);
    return xm_genai_status(&err);
}

ov_status_e
ov_genai_generation_config_set_stop_token_ids(ov_genai_generation_config *config,
                                              const int64_t *token_ids,
                                              size_t token_ids_num)
{
    struct xm_error err = {0};
    if (!xm_api_is(config, XM_API_CONFIG) || !token_ids)
        return INVALID_C_PARAM;
    set_stop_ids(config, token_ids, token_ids_num, &err);
    return xm_genai_status(&err);
}

ov_status_e
ov_genai_generation_config_get_max_new_tokens(const ov_genai_generation_config *config,
                                              size_t *max_new_tokens)
{
    if (!xm_api_is(config, XM_API_CONFIG) || !max_new_tokens)
        return INVALID_C_PARAM;
    *max_new_tokens = config->max_new_tokens;
    return OK;
}

ov_status_e
ov_genai_generation_config_validate(ov_genai_generation_config *config)
{
    struct xm_error err = {0};
    if (!xm_api_is(config, XM_API_CONFIG))
        return INVALID_C_PARAM;
    xm_genai_config_check(config, &err);
    return xm_genai_status(&err);
}

/* ---- generation_config.json ------------------------------------------------------------ */

static enum xm_status
wrong_type(yyjson_val *value, const char *name, const char *expected,
           struct xm_error *err)
{
    return xm_fail(err, XM_INVALID, "'%s' is %s, expected %s", name,
                   yyjson_get_type_desc(value), expected);
}

static enum xm_status
read_SIZE(yyjson_val *root, const char *name, size_t *to, struct xm_error *err)
{
    uint64_t count = *to;
    XM_TRY(xm_generation_file_count(root, name, &count, err));
    *to = (size_t)count;
    return XM_OK;
}

static enum xm_status
read_REAL(yyjson_val *root, const char *name, float *to, struct xm_error *err)
{
    double number = *to;
    XM_TRY(xm_generation_file_number(root, name, &number, err));
    *to = (float)number;
    return XM_OK;
}

#define read_FLAG xm_json_bool

static enum xm_status
read_fields(yyjson_val *root, ov_genai_generation_config *c, struct xm_error *err)
{
#define FIELD(kind, name, its_default) XM_TRY(read_##kind(root, #name, &c->name, err));
#include "plugin/genai/generation_fields.def"
    return XM_OK;
}

/* Reads an id, or a list of ids; *first becomes the first one (`first` may be NULL). */
static enum xm_status
read_ids(yyjson_val *root, const char *name, ov_genai_generation_config *c,
         int64_t *first, struct xm_error *err)
{
    struct xm_token_list ids = {0};
    enum xm_status s = xm_generation_file_ids(root, name, &ids, err);
    for (size_t i = 0; i < ids.n && s == XM_OK; i++)
        s = xm_genai_config_add_stop_id(c, ids.ids[i], err);
    if (s == XM_OK && first && ids.n > 0)
        *first = ids.ids[0];
    xm_token_list_free(&ids);
    return s;
}

/* Reads a string, or a list of strings. */
static enum xm_status
read_stops(yyjson_val *root, const char *name, ov_genai_generation_config *c,
           struct xm_error *err)
{
    yyjson_val *value = yyjson_obj_get(root, name);
    const bool is_list = yyjson_is_arr(value);
    const size_t n = is_list ? yyjson_arr_size(value) : 1;
    enum xm_status s = XM_OK;
    if (!value || yyjson_is_null(value))
        return XM_OK;
    const char **strings = xm_calloc(n ? n : 1, sizeof(*strings));
    if (!strings)
        return xm_no_memory(err, "a generation config");
    for (size_t i = 0; i < n && s == XM_OK; i++) {
        yyjson_val *one = is_list ? yyjson_arr_get(value, i) : value;
        strings[i] = yyjson_get_str(one);
        if (!strings[i])
            s = wrong_type(one, name, "a string or a list of strings", err);
    }
    if (s == XM_OK)
        s = set_stops(c, strings, n, err);
    xm_free(strings);
    return s;
}

static enum xm_status
read_criteria(yyjson_val *root, const char *name, ov_genai_generation_config *c,
              struct xm_error *err)
{
    yyjson_val *value = yyjson_obj_get(root, name);
    if (yyjson_is_bool(value))
        c->stop_criteria = yyjson_get_bool(value) ? EARLY : HEURISTIC;
    else if (yyjson_equals_str(value, "never"))
        c->stop_criteria = NEVER;
    else if (value && !yyjson_is_null(value))
        return wrong_type(value, name, "true, false or \"never\"", err);
    return XM_OK;
}

static enum xm_status
read_all(yyjson_val *root, ov_genai_generation_config *c, struct xm_error *err)
{
    XM_TRY(read_fields(root, c, err));
    XM_TRY(read_ids(root, "eos_token_id", c, &c->eos_token_id, err));
    XM_TRY(read_ids(root, "stop_token_ids", c, NULL, err));
    XM_TRY(read_stops(root, "stop_strings", c, err));
    return read_criteria(root, "early_stopping", c, err);
}

enum xm_status
xm_genai_config_read(const char *path, ov_genai_generation_config *c,
                     struct xm_error *err)
{
    yyjson_doc *doc = NULL;
    xm_genai_config_init(c);
    XM_TRY(xm_generation_file_open(path, &doc, err));
    const enum xm_status s = read_all(yyjson_doc_get_root(doc), c, err);
    yyjson_doc_free(doc);
    if (s != XM_OK) {
        xm_error_prefix(err, "'%s'", path);
        xm_genai_config_clear(c);
    }
    return s;
}

ov_status_e
ov_genai_generation_config_create_from_json(const char *json_path,
                                            ov_genai_generation_config **config)
{
    struct xm_error err = {0};
    ov_genai_generation_config *c = NULL;
    if (!json_path || !config)
        return INVALID_C_PARAM;
    ov_status_e s = ov_genai_generation_config_create(&c);
    if (s != OK)
        return s;
    if (xm_genai_config_read(json_path, c, &err) == XM_OK)
        *config = c;
    else if (xm_api_handle_drop(c, XM_API_CONFIG)) /* its members were freed already */
        xm_free(c);
    return xm_genai_status(&err);
}
