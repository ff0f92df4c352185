/* SPDX-License-Identifier: Apache-2.0
 *
 * xemoe info --metadata: prints the keys and tensors of a GGUF file, as text or as JSON. Values are
 * JSON in both.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "plugin/cli/info.h"
#include "plugin/program_util/lines.h"
#include "plugin/readers/gguf.h"
#include "runtime/util/utf8.h"

enum { FEW_VALUES = 8, SHORT_TEXT = 200 };

/* ---- values -------------------------------------------------------------------------- */

/* Returns a JSON text of at most `most` bytes of `text`. */
static yyjson_mut_val *
text_value(struct xm_json_out *j, struct xm_slice text, size_t most)
{
    struct xm_strbuf clean = {0};
    if (text.n > most)
        text.n = most;
    xm_utf8_repair(text, &clean);
    j->failed |= !xm_strbuf_ok(&clean);
    yyjson_mut_val *v = yyjson_mut_strncpy(j->doc, xm_strbuf_text(&clean), clean.n);
    xm_strbuf_free(&clean);
    return v;
}

/* Returns value i; texts must be read in order. NULL: out of memory. */
static yyjson_mut_val *
one_value(struct xm_json_out *j, struct xm_gguf_values *l, uint64_t i, size_t most)
{
    struct xm_slice text = {0};
    double real = 0;
    uint64_t whole = 0;
    int64_t below = 0;
    if (l->element == XM_STRING && xm_gguf_next_text(l, &text, NULL) == XM_OK)
        return text_value(j, text, most);
    if (l->element == XM_BOOL)
        return yyjson_mut_bool(j->doc, l->bytes.p[i] != 0);
    if (xm_gguf_f64_at(l, i, &real, NULL) == XM_OK)
        return isfinite(real) ? yyjson_mut_real(j->doc, real) : yyjson_mut_null(j->doc);
    if (xm_gguf_u64_at(l, i, &whole, NULL) == XM_OK)
        return yyjson_mut_uint(j->doc, whole);
    if (xm_gguf_i64_at(l, i, &below, NULL) == XM_OK)
        return yyjson_mut_sint(j->doc, below);
    return NULL;
}

/* Returns the first values; for a long list only its length. */
static yyjson_mut_val *
few_values(struct xm_json_out *j, struct xm_gguf_values l, size_t most)
{
    const uint64_t n = l.element == XM_DYNAMIC ? 0 : l.n;
    yyjson_mut_val *list = yyjson_mut_arr(j->doc);
    for (uint64_t i = 0; i < n && i < FEW_VALUES; i++)
        j->failed |= !yyjson_mut_arr_append(list, one_value(j, &l, i, most));
    return list;
}

static yyjson_mut_val *
value_of(struct xm_json_out *j, const struct xm_gguf_key *k, size_t most)
{
    struct xm_gguf_values one = k->value;
    return k->is_list ? few_values(j, one, most) : one_value(j, &one, 0, most);
}

/* ---- text ---------------------------------------------------------------------------- */

static enum xm_status
print_key(struct xm_lines *o, struct xm_json_out *j, const struct xm_gguf_key *k,
          struct xm_error *err)
{
    const struct xm_gguf_values *l = &k->value;
    char *text = xm_json_value_text(value_of(j, k, SHORT_TEXT));
    if (!text || j->failed) {
        xm_free(text);
        return xm_no_memory(err, "the value of a key");
    }
    xm_lines_add(o, "  %-44.*s %-8s %s", (int)k->name.n, k->name.text,
                 xm_gguf_element_text(l->element), text);
    if (k->is_list)
        xm_lines_add(o, " %s%" PRIu64, l->n > FEW_VALUES ? "… of " : "of ", l->n);
    else if (l->element == XM_STRING && l->bytes.n > 8 + SHORT_TEXT)
        xm_lines_add(o, "… of %" PRIu64 " bytes", l->bytes.n - 8);
    xm_lines_add(o, "\n");
    xm_free(text);
    return XM_OK;
}

static void
print_tensor(struct xm_lines *o, const struct xm_gguf_tensor *t)
{
    uint64_t dim[XM_GGUF_MAX_RANK];
    struct xm_strbuf shape = {0};
    xm_gguf_tensor_dims(t, dim);
    for (uint32_t i = 0; i < t->rank; i++)
        xm_strbuf_printf(&shape, "%s%" PRIu64, i ? "," : "", dim[i]);
    xm_lines_add(o, "  %-44.*s %-8s [%s]  %" PRIu64 "\n", (int)t->name.n, t->name.text,
                 t->type->text, xm_strbuf_text(&shape), t->data.n);
    xm_strbuf_free(&shape);
}

static enum xm_status
print_all(struct xm_lines *o, const struct xm_gguf *g, struct xm_json_out *j,
          struct xm_error *err)
{
    const struct xm_gguf_part *first = &g->parts[0];
    xm_lines_add(o, "%-14s%" PRIu32 "\n%-14s%" PRIu32 "\n", "version", first->version,
                 "alignment", first->alignment);
    for (uint64_t i = 0; i < g->n_parts; i++)
        xm_lines_add(o, "%-14s%s  %" PRIu64 "\n", "file", g->parts[i].path,
                     g->parts[i].n_bytes);
    xm_lines_add(o, "%-14s%" PRIu64 "\n", "keys", first->n_keys);
    for (uint64_t i = 0; i < first->n_keys; i++)
        XM_TRY(print_key(o, j, &first->keys[i], err));
    xm_lines_add(o, "%-14s%" PRIu64 "\n", "tensors", g->n_tensors);
    for (uint64_t i = 0; i < g->n_tensors; i++)
        print_tensor(o, g->tensors[i]);
    return XM_OK;
}

/* ---- JSON ---------------------------------------------------------------------------- */

static void
add_key(struct xm_json_out *j, yyjson_mut_val *list, const struct xm_gguf_key *k)
{
    const char *type = xm_gguf_element_text(k->value.element);
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    xm_json_add_text(j, o, "name", k->name.text, k->name.n);
    xm_json_add_text(j, o, "type", type, strlen(type));
    if (k->is_list)
        xm_json_add_whole(j, o, "count", k->value.n);
    j->failed |= !yyjson_mut_obj_add_val(j->doc, o, k->is_list ? "values" : "value",
                                         value_of(j, k, SIZE_MAX));
}

static void
add_tensor(struct xm_json_out *j, yyjson_mut_val *list, const struct xm_gguf_tensor *t)
{
    uint64_t dim[XM_GGUF_MAX_RANK];
    yyjson_mut_val *o = xm_json_add_object(j, list, NULL);
    xm_json_add_text(j, o, "name", t->name.text, t->name.n);
    xm_json_add_text(j, o, "type", t->type->text, strlen(t->type->text));
    yyjson_mut_val *shape = xm_json_add_array(j, o, "shape");
    xm_gguf_tensor_dims(t, dim);
    for (uint32_t i = 0; i < t->rank; i++)
        xm_json_add_whole(j, shape, NULL, dim[i]);
    xm_json_add_whole(j, o, "bytes", t->data.n);
}

static enum xm_status
print_json(const struct xm_gguf *g, struct xm_json_out *j, struct xm_error *err)
{
    const struct xm_gguf_part *first = &g->parts[0];
    xm_json_add_whole(j, NULL, "version", first->version);
    xm_json_add_whole(j, NULL, "alignment", first->alignment);
    yyjson_mut_val *files = xm_json_add_array(j, NULL, "files");
    for (uint64_t i = 0; i < g->n_parts; i++) {
        yyjson_mut_val *o = xm_json_add_object(j, files, NULL);
        xm_json_add_text(j, o, "path", g->parts[i].path, strlen(g->parts[i].path));
        xm_json_add_whole(j, o, "bytes", g->parts[i].n_bytes);
    }
    yyjson_mut_val *keys = xm_json_add_array(j, NULL, "keys");
    for (uint64_t i = 0; i < first->n_keys; i++)
        add_key(j, keys, &first->keys[i]);
    yyjson_mut_val *tensors = xm_json_add_array(j, NULL, "tensors");
    for (uint64_t i = 0; i < g->n_tensors; i++)
        add_tensor(j, tensors, g->tensors[i]);
    return xm_json_print(j, err);
}

int
xm_info_metadata(const char *path, bool json)
{
    struct xm_error err = {0};
    struct xm_gguf *g = NULL;
    struct xm_json_out j;
    struct xm_lines o = xm_lines_to(stdout);
    xm_json_begin(&j);
    struct stat about;
    enum xm_status s = XM_OK;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        s = xm_fail(&err, XM_UNSUPPORTED,
                    "option --metadata needs a .gguf file, but '%.150s' is a folder; "
                    "folders of OpenVINO IR have no such keys",
                    path);
    if (s == XM_OK)
        s = xm_gguf_open(path, &g, &err);
    if (s == XM_OK)
        s = json ? print_json(g, &j, &err) : print_all(&o, g, &j, &err);
    xm_lines_end(&o);
    xm_gguf_close(g);
    xm_json_end(&j);
    return s == XM_OK ? xm_cli_flush() : xm_cli_failed(&err);
}
