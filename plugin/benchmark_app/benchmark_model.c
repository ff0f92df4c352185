/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_model.h"

#include <stdio.h>
#include <string.h>

#include "plugin/benchmark_app/benchmark_out.h"
#include "plugin/program_util/progress.h"
#include "runtime/util/clock.h"
#include "runtime/util/element.h"
#include "xemoe/xemoe.h"

enum xm_status
xm_benchmark_api(ov_status_e status, const char *what, struct xm_error *err)
{
    if (status == OK)
        return XM_OK;
    const char *text = ov_get_last_err_msg();
    xm_fail(err, status == INFER_CANCELLED ? XM_CANCELLED : XM_DEVICE, "%s%s%s",
            what ? what : "", what ? ": " : "",
            text && text[0] ? text : ov_get_error_info(status));
    ov_free(text);
    return status == INFER_CANCELLED ? XM_CANCELLED : XM_DEVICE;
}

static void
free_ports(struct xm_benchmark_ports *p)
{
    for (size_t i = 0; i < p->n; i++) {
        xm_free(p->list[i].name);
        ov_free(p->list[i].node);
        ov_free(p->list[i].layout);
    }
    xm_free(p->list);
    *p = (struct xm_benchmark_ports){0};
}

void
xm_benchmark_model_free(struct xm_benchmark_model *m)
{
    free_ports(&m->inputs);
    free_ports(&m->outputs);
    ov_compiled_model_free(m->compiled);
    ov_model_free(m->model);
    ov_core_free(m->core);
    *m = (struct xm_benchmark_model){0};
}

/* ---- properties -------------------------------------------------------------------- */

/* Whether `key` occurs in a device's property that is a list of words. */
static bool
is_listed(const ov_core_t *core, const char *device, const char *list, const char *key)
{
    char *text = NULL;
    const bool found = ov_core_get_property(core, device, list, &text) == OK &&
                       xm_list_has(text, ' ', key, strlen(key));
    ov_free(text);
    return found;
}

static bool
is_from_file(const struct xm_benchmark_property *p)
{
    return p->source && strcmp(p->source, "-load_config") == 0;
}

/* Whether the program itself uses the property, even if the device does not: the hint also chooses
 * the API, and the number of requests is that of this program. */
static bool
is_own(const struct xm_benchmark_property *p)
{
    return strcmp(p->key, "PERFORMANCE_HINT") == 0 ||
           strcmp(p->key, "PERFORMANCE_HINT_NUM_REQUESTS") == 0;
}

/* Warns of a property that the device does not use, unless the program uses it itself. A hint of
 * -hint that the device lacks is reported in any case. */
static void
warn_of_property(const struct xm_benchmark_property *p, bool is_accepted)
{
    const bool is_hint = strcmp(p->source, "-hint") == 0;
    if (!is_own(p) || (is_hint && !is_accepted))
        xm_benchmark_warn("%s: %s has no effect on device %s", p->source, p->key,
                          p->device);
}

static ov_status_e
look_at(const ov_core_t *core, const struct xm_benchmark_property *p)
{
    char *value = NULL;
    const ov_status_e s = ov_core_get_property(core, p->device, p->key, &value);
    ov_free(value);
    return s;
}

/* Sets a property. A property that the device lacks is skipped if it comes from a flag, but is an
 * error if it comes from a file. */
static enum xm_status
set_property(const ov_core_t *core, struct xm_benchmark_property *p, struct xm_error *err)
{
    const bool works = is_listed(core, p->device, "SUPPORTED_PROPERTIES", p->key);
    const bool is_accepted = is_listed(core, p->device, "XM_ACCEPTED_PROPERTIES", p->key);
    const bool is_left_out = !works && !is_accepted && (!is_from_file(p) || is_own(p));
    p->is_unknown = is_left_out && !is_own(p) && look_at(core, p) != OK;
    if (!is_left_out)
        XM_TRY(xm_benchmark_api(ov_core_set_property(core, p->device, p->key, p->value),
                                p->source, err));
    if (!works && p->source)
        warn_of_property(p, is_accepted);
    if (!p->source && !is_left_out)
        xm_benchmark_warn("No performance hint was given (-hint): device %s gets %s %s",
                          p->device, p->key, p->value);
    /* reads the property back, because some values are checked only when they are read */
    return works ? xm_benchmark_api(look_at(core, p), p->source, err) : XM_OK;
}

enum xm_status
xm_benchmark_model_configure(struct xm_benchmark_model *m, struct xm_benchmark_config *c,
                             struct xm_error *err)
{
    for (size_t i = 0; i < c->n; i++)
        XM_TRY(set_property(m->core, &c->list[i], err));
    return XM_OK;
}

/* ---- ports ------------------------------------------------------------------------- */

static enum xm_status
read_names(const ov_output_const_port_t *port, struct xm_benchmark_port *out,
           struct xm_error *err)
{
    char *name = NULL;
    XM_TRY(xm_benchmark_api(xm_port_node_name(port, &out->node), NULL, err));
    out->is_named = ov_port_get_any_name(port, &name) == OK;
    out->name = xm_strdup(out->is_named ? name : out->node);
    ov_free(name);
    return out->name ? XM_OK : xm_no_memory(err, "a model's ports");
}

static enum xm_status
read_port(const ov_output_const_port_t *port, struct xm_benchmark_port *out,
          struct xm_error *err)
{
    ov_partial_shape_t shape = {0};
    XM_TRY(xm_benchmark_api(ov_port_get_element_type(port, &out->type), NULL, err));
    XM_TRY(xm_benchmark_api(ov_port_get_partial_shape(port, &shape), NULL, err));
    const bool fits = shape.rank.min == shape.rank.max && shape.rank.max >= 0 &&
                      shape.rank.max <= XM_BENCHMARK_RANK;
    for (uint32_t i = 0; fits && i < (uint32_t)shape.rank.max; i++) {
        out->dims.min[i] = shape.dims[i].min;
        out->dims.max[i] = shape.dims[i].max;
        out->dims.rank = i + 1;
    }
    ov_partial_shape_free(&shape);
    return fits ? XM_OK
                : xm_fail(err, XM_UNSUPPORTED,
                          "'%.100s' has no fixed number of dimensions up to %d",
                          out->name, XM_BENCHMARK_RANK);
}

/* Gets a port from the compiled model if there is one, else from the model. */
static ov_status_e
get_port(const struct xm_benchmark_model *m, bool is_output, size_t i,
         ov_output_const_port_t **port)
{
    if (m->compiled)
        return is_output ? ov_compiled_model_output_by_index(m->compiled, i, port)
                         : ov_compiled_model_input_by_index(m->compiled, i, port);
    return is_output ? ov_model_const_output_by_index(m->model, i, port)
                     : ov_model_const_input_by_index(m->model, i, port);
}

static ov_status_e
count_ports(const struct xm_benchmark_model *m, bool is_output, size_t *n)
{
    if (m->compiled)
        return is_output ? ov_compiled_model_outputs_size(m->compiled, n)
                         : ov_compiled_model_inputs_size(m->compiled, n);
    return is_output ? ov_model_outputs_size(m->model, n)
                     : ov_model_inputs_size(m->model, n);
}

static ov_status_e
get_named(const struct xm_benchmark_ports *p, const char *name,
          ov_output_const_port_t **port)
{
    const struct xm_benchmark_model *m = p->model;
    if (m->compiled)
        return p->are_outputs ? ov_compiled_model_output_by_name(m->compiled, name, port)
                              : ov_compiled_model_input_by_name(m->compiled, name, port);
    return p->are_outputs ? ov_model_const_output_by_name(m->model, name, port)
                          : ov_model_const_input_by_name(m->model, name, port);
}

/* Returns the first name of the tensor with the name `name`; the caller frees it with ov_free.
 * NULL: there is none. */
static char *
first_name(const struct xm_benchmark_ports *p, struct xm_slice name)
{
    struct xm_strbuf text = {0};
    ov_output_const_port_t *port = NULL;
    char *first = NULL;
    xm_strbuf_add_n(&text, name.text, name.n);
    if (!text.failed && get_named(p, xm_strbuf_text(&text), &port) == OK)
        ov_port_get_any_name(port, &first);
    ov_output_const_port_free(port);
    xm_strbuf_free(&text);
    return first;
}

static size_t
find_equal(const struct xm_benchmark_ports *p, struct xm_slice name, bool by_node)
{
    size_t i = 0;
    for (; i < p->n; i++) {
        const char *own = by_node ? p->list[i].node : p->list[i].name;
        if (xm_slice_equal(name, xm_slice_of(own, strlen(own))))
            break;
    }
    return i;
}

size_t
xm_benchmark_ports_find(const struct xm_benchmark_ports *ports, struct xm_slice name)
{
    size_t i = find_equal(ports, name, false);
    char *first = i == ports->n ? first_name(ports, name) : NULL;
    if (first)
        i = find_equal(ports, xm_slice_of(first, strlen(first)), false);
    ov_free(first);
    return i < ports->n ? i : find_equal(ports, name, true);
}

static enum xm_status
read_ports(const struct xm_benchmark_model *m, bool is_output,
           struct xm_benchmark_ports *out, struct xm_error *err)
{
    size_t n = 0;
    XM_TRY(xm_benchmark_api(count_ports(m, is_output, &n), NULL, err));
    out->list = xm_calloc(n + 1, sizeof(*out->list));
    out->model = m;
    out->are_outputs = is_output;
    if (!out->list)
        return xm_no_memory(err, "a model's ports");
    for (out->n = 0; out->n < n;) {
        ov_output_const_port_t *port = NULL;
        XM_TRY(xm_benchmark_api(get_port(m, is_output, out->n, &port), NULL, err));
        struct xm_benchmark_port *p = &out->list[out->n++];
        enum xm_status s = read_names(port, p, err);
        if (s == XM_OK)
            s = read_port(port, p, err);
        ov_output_const_port_free(port);
        XM_TRY(s);
    }
    return XM_OK;
}

static enum xm_status
read_all_ports(struct xm_benchmark_model *m, struct xm_error *err)
{
    XM_TRY(read_ports(m, false, &m->inputs, err));
    return read_ports(m, true, &m->outputs, err);
}

/* Keeps the inputs' layouts, and the addresses of their names, which flags refer to. */
enum xm_status
xm_benchmark_model_update_ports(struct xm_benchmark_model *m, struct xm_error *err)
{
    struct xm_benchmark_ports old = m->inputs;
    m->inputs = (struct xm_benchmark_ports){0};
    free_ports(&m->outputs);
    const enum xm_status s = read_all_ports(m, err);
    for (size_t i = 0; s == XM_OK && i < m->inputs.n; i++) {
        char *name = m->inputs.list[i].name;
        m->inputs.list[i].name = old.list[i].name;
        m->inputs.list[i].layout = old.list[i].layout;
        old.list[i].name = name;
        old.list[i].layout = NULL;
    }
    free_ports(&old);
    return s;
}

static void
print_port(const struct xm_benchmark_port *p)
{
    struct xm_strbuf text = {0};
    const char *type = xm_element_text((enum xm_element)p->type);
    xm_strbuf_printf(&text, "    %s (node: %s) : %s / %s / ",
                     p->is_named ? p->name : "***NO_NAME***", p->node, type,
                     p->layout ? p->layout : "[...]");
    xm_benchmark_dims_print(&p->dims, &text);
    xm_benchmark_info("%s", xm_strbuf_text(&text));
    xm_strbuf_free(&text);
}

void
xm_benchmark_model_print_ports(const struct xm_benchmark_model *m)
{
    xm_benchmark_info("Model inputs:");
    for (size_t i = 0; i < m->inputs.n; i++)
        print_port(&m->inputs.list[i]);
    xm_benchmark_info("Model outputs:");
    for (size_t i = 0; i < m->outputs.n; i++)
        print_port(&m->outputs.list[i]);
}

bool
xm_benchmark_model_is_dynamic(const struct xm_benchmark_model *m)
{
    for (size_t i = 0; i < m->inputs.n; i++) {
        if (!xm_benchmark_dims_are_fixed(&m->inputs.list[i].dims))
            return true;
    }
    return false;
}

/* ---- reading and compiling --------------------------------------------------------- */

bool
xm_benchmark_model_is_exported(const char *path)
{
    static const char mark[] = XM_EXPORTED_MODEL_MARK;
    char begin[sizeof(mark) - 1] = {0};
    FILE *f = fopen(path, "rb");
    const bool is = f && fread(begin, 1, sizeof(begin), f) == sizeof(begin) &&
                    memcmp(begin, mark, sizeof(begin)) == 0;
    if (f)
        fclose(f);
    return is;
}

static double
ms_since(double then)
{
    return 1e3 * (xm_now() - then);
}

enum xm_status
xm_benchmark_model_read(struct xm_benchmark_model *m, const char *path,
                        struct xm_error *err)
{
    const double then = xm_now();
    XM_TRY(
        xm_benchmark_api(ov_core_read_model(m->core, path, NULL, &m->model), "-m", err));
    m->read_ms = ms_since(then);
    return read_all_ports(m, err);
}

enum xm_status
xm_benchmark_model_compile(struct xm_benchmark_model *m, const char *path,
                           const char *device, struct xm_error *err)
{
    const double then = xm_now();
    ov_status_e s;
    if (m->is_exported)
        s = xm_import_model_from_file(m->core, path, device, &m->compiled);
    else if (m->model)
        s = ov_core_compile_model(m->core, m->model, device, 0, &m->compiled);
    else
        s = ov_core_compile_model_from_file(m->core, path, device, 0, &m->compiled);
    m->compile_ms = ms_since(then);
    XM_TRY(xm_benchmark_api(s, NULL, err));
    return m->model ? XM_OK : read_all_ports(m, err);
}

enum xm_status
xm_benchmark_model_write_graph(const struct xm_benchmark_model *m, const char *path,
                               struct xm_error *err)
{
    ov_model_t *graph = NULL;
    ov_status_e s = ov_compiled_model_get_runtime_model(m->compiled, &graph);
    if (s == OK)
        s = xm_model_save(graph, path);
    ov_model_free(graph);
    return xm_benchmark_api(s, "-exec_graph_path", err);
}

char *
xm_benchmark_model_property(const struct xm_benchmark_model *m, const char *key)
{
    char *value = NULL;
    return ov_compiled_model_get_property(m->compiled, key, &value) == OK ? value : NULL;
}

void
xm_benchmark_show_builds(void)
{
    if (xm_progress_is_shown())
        xm_watch_builds(xm_progress_build, NULL);
}

void
xm_benchmark_hide_builds(void)
{
    xm_watch_builds(NULL, NULL);
}
