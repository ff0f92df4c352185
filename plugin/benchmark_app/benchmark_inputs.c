/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin/benchmark_app/benchmark_files.h"
#include "plugin/benchmark_app/benchmark_out.h"
#include "runtime/util/element.h"

/* The role of an input. LAST is the input that 'xemoe compile' adds for the tokens whose logits are
 * wanted; it has no tensor name. */
enum role { RANDOM, IDS, MASK, POSITIONS, BEAM, LAST, N_ROLES };

static const char *const role_names[N_ROLES] = {
    [IDS] = "input_ids", [MASK] = "attention_mask",         [POSITIONS] = "position_ids",
    [BEAM] = "beam_idx", [LAST] = "sampled_tokens_indices",
};
/* Defaults without -data_shape; FEW_IDS if the vocabulary is not known. */
enum { BATCH = 1, TOKENS = 16, FEW_IDS = 32 };

struct maker {
    const struct xm_benchmark_model *model;
    const struct xm_benchmark_args *args;
    struct xm_benchmark_inputs *out;
    const struct xm_benchmark_shapes *shapes;
    struct xm_benchmark_files files;
    enum role *roles; /* owned; one for each input */
    uint64_t vocabulary, random;
    int64_t n_tokens; /* number of tokens in the current set */
    struct xm_error *err;
};

static const struct xm_benchmark_port *
port_of(const struct maker *m, size_t i)
{
    return &m->model->inputs.list[i];
}

/* ---- roles of a language model ----------------------------------------------------- */

static enum role
role_of(const struct xm_benchmark_port *p)
{
    const bool is_whole = xm_element_is_int((enum xm_element)p->type);
    for (int r = IDS; r < N_ROLES && is_whole; r++) {
        if (strcmp(p->name, role_names[r]) == 0)
            return (enum role)r;
    }
    return is_whole && !p->is_named && p->dims.rank == 1 ? LAST : RANDOM;
}

static uint64_t
find_vocabulary(const struct xm_benchmark_model *m)
{
    const struct xm_benchmark_dims *d = m->outputs.n ? &m->outputs.list[0].dims : NULL;
    const int64_t last = d && d->rank ? d->max[d->rank - 1] : -1;
    return last > 0 ? (uint64_t)last : FEW_IDS;
}

static void
find_roles(struct maker *m)
{
    bool has[N_ROLES] = {false};
    for (size_t i = 0; i < m->model->inputs.n; i++) {
        m->roles[i] = role_of(port_of(m, i));
        has[m->roles[i]] = true;
        if (m->roles[i] == IDS)
            m->out->ids = i;
    }
    m->out->is_language = has[IDS] && (has[MASK] || has[POSITIONS] || has[BEAM]) &&
                          port_of(m, m->out->ids)->dims.rank == 2;
    m->vocabulary = find_vocabulary(m->model);
    for (size_t i = 0; i < m->model->inputs.n && !m->out->is_language; i++)
        m->roles[i] = RANDOM;
}

/* ---- shapes ------------------------------------------------------------------------ */

static void
add_dim(struct xm_benchmark_dims *d, int64_t n)
{
    d->min[d->rank] = d->max[d->rank] = n;
    d->rank++;
}

/* Returns the size that the model fixes, or `otherwise` clipped to the model's bounds. */
static int64_t
size_or(const struct xm_benchmark_dims *d, uint32_t axis, int64_t otherwise)
{
    const int64_t min = d->min[axis], max = d->max[axis];
    const int64_t most = max >= 0 && max < otherwise ? max : otherwise;
    return most < min ? min : most;
}

/* Returns the number of shapes in -data_shape for an input; 0 if the model fixes its shape. */
static size_t
count_said(const struct maker *m, size_t i)
{
    const struct xm_benchmark_port *p = port_of(m, i);
    return xm_benchmark_dims_are_fixed(&p->dims)
               ? 0
               : xm_benchmark_shapes_count(m->shapes, p->name);
}

/* Finds an input's shape in -data_shape, in the model, or in the input's file. */
static bool
find_own_shape(const struct maker *m, size_t i, size_t set, struct xm_benchmark_dims *out)
{
    const struct xm_benchmark_port *p = port_of(m, i);
    const size_t n_said = count_said(m, i);
    const struct xm_benchmark_shape *said =
        n_said ? xm_benchmark_shapes_find(m->shapes, p->name,
                                          set % m->out->n_groups % n_said)
               : NULL;
    if (!said && !xm_benchmark_dims_are_fixed(&p->dims))
        return xm_benchmark_files_shape(&m->files, i, set, out);
    *out = said ? said->dims : p->dims;
    return true;
}

/* Finds the number of rows and of tokens in each from the shape of an input. A file without a
 * header has one row. */
static bool
find_own_tokens(const struct maker *m, size_t i, size_t set, int64_t size[2])
{
    const struct xm_benchmark_port *p = port_of(m, i);
    struct xm_benchmark_dims own;
    if (p->dims.rank != 2)
        return false;
    if (find_own_shape(m, i, set, &own)) {
        size[0] = own.min[0];
        size[1] = own.min[1];
        return own.rank == 2;
    }
    const uint64_t n = xm_benchmark_files_count(&m->files, i, set, p->type);
    size[0] = size_or(&p->dims, 0, BATCH);
    size[1] = size[0] ? (int64_t)n / size[0] : 0;
    return n > 0;
}

/* Finds the sizes from the ids, else from the mask, else from the positions. Returns false: none
 * has a shape. */
static bool
find_tokens(const struct maker *m, size_t set, int64_t size[2])
{
    for (int r = IDS; r <= POSITIONS; r++) {
        for (size_t i = 0; i < m->model->inputs.n; i++) {
            if ((int)m->roles[i] == r && find_own_tokens(m, i, set, size))
                return true;
        }
    }
    const struct xm_benchmark_dims *ids = &port_of(m, m->out->ids)->dims;
    size[0] = size_or(ids, 0, BATCH);
    size[1] = size_or(ids, 1, TOKENS);
    return false;
}

/* Derives the remaining dimensions of a language model's input from the number of tokens. */
static bool
find_language_shape(const struct maker *m, size_t i, size_t set,
                    struct xm_benchmark_dims *out)
{
    const struct xm_benchmark_port *p = port_of(m, i);
    int64_t size[2];
    find_tokens(m, set, size);
    *out = (struct xm_benchmark_dims){0};
    if (m->roles[i] == RANDOM || p->dims.rank > 3)
        return false;
    if (p->dims.rank == 3) /* positions with several components, as for images */
        add_dim(out, p->dims.max[0] > 0 ? p->dims.max[0] : 1);
    add_dim(out, m->roles[i] == LAST ? 1 : size[0]);
    if (p->dims.rank > 1)
        add_dim(out, size[1]);
    return true;
}

/* Finds the shape of an input in a set. */
static enum xm_status
find_shape(const struct maker *m, size_t i, size_t set, struct xm_benchmark_dims *out)
{
    const struct xm_benchmark_port *p = port_of(m, i);
    if (!find_own_shape(m, i, set, out) &&
        !(m->out->is_language && find_language_shape(m, i, set, out)))
        return xm_fail(m->err, XM_INVALID, "Input %s is dynamic. Provide data shapes!",
                       p->name);
    if (xm_benchmark_dims_take(&p->dims, out))
        return XM_OK;
    struct xm_strbuf want = {0}, found = {0};
    xm_benchmark_dims_print(&p->dims, &want);
    xm_benchmark_dims_print(out, &found);
    xm_fail(m->err, XM_INVALID, "-data_shape: input '%s' takes %s, found %s", p->name,
            xm_strbuf_text(&want), xm_strbuf_text(&found));
    xm_strbuf_free(&want);
    xm_strbuf_free(&found);
    return XM_INVALID;
}

/* Checks that every shape of -data_shape belongs to an input, and that each input has one shape, or
 * as many as there are groups. */
static enum xm_status
check_groups(const struct maker *m)
{
    size_t used = 0;
    for (size_t i = 0; i < m->model->inputs.n; i++) {
        const char *name = port_of(m, i)->name;
        const size_t n = count_said(m, i);
        const struct xm_benchmark_shape *first =
            xm_benchmark_shapes_find(m->shapes, name, 0);
        if (n > 1 && n != m->out->n_groups)
            return xm_fail(m->err, XM_INVALID,
                           "-data_shape: input '%s' has %zu shapes, but another input "
                           "has %zu; every input needs one shape or the same number",
                           name, n, m->out->n_groups);
        used += first && first->name.n ? xm_benchmark_shapes_count(m->shapes, name) : 0;
    }
    for (size_t k = 0; k < m->shapes->n; k++)
        used += m->shapes->list[k].name.n == 0;
    return used == m->shapes->n
               ? XM_OK
               : xm_fail(
                     m->err, XM_INVALID,
                     "-data_shape names an input that the model does not have: '%.80s'",
                     m->args->data_shape);
}

/* Whether an input has different shapes in the first set and in another one. */
static bool
files_have_shapes(const struct maker *m, size_t n_sets)
{
    struct xm_benchmark_dims first, other;
    for (size_t i = 0; i < m->model->inputs.n; i++) {
        if (!find_own_shape(m, i, 0, &first))
            continue;
        for (size_t set = 1; set < n_sets; set++) {
            if (find_own_shape(m, i, set, &other) &&
                !xm_benchmark_dims_equal(&first, &other))
                return true;
        }
    }
    return false;
}

static enum xm_status
count_sets(struct maker *m)
{
    m->out->n_groups = 1;
    for (size_t i = 0; i < m->model->inputs.n; i++) {
        const size_t n = count_said(m, i);
        m->out->n_groups = n > m->out->n_groups ? n : m->out->n_groups;
    }
    const size_t files = xm_benchmark_files_most(&m->files);
    const size_t groups = m->out->n_groups;
    m->out->n_sets = (files > groups ? files + groups - 1 : groups) / groups * groups;
    XM_TRY(check_groups(m));
    m->out->groups_are_files = groups == 1 && files_have_shapes(m, m->out->n_sets);
    if (m->out->groups_are_files)
        m->out->n_groups = m->out->n_sets;
    return XM_OK;
}

/* ---- values ------------------------------------------------------------------------ */

/* Marsaglia's xorshift; the numbers are the same in each run. */
static uint64_t
next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x >> 11; /* the upper bits are more random */
}

static void
fill_bytes(struct maker *m, struct xm_benchmark_tensor *t)
{
    uint8_t *bytes = t->data;
    for (uint64_t i = 0; i < t->bytes; i++)
        bytes[i] = (uint8_t)next_random(&m->random);
}

static int64_t
whole_value(struct maker *m, enum role role, const struct xm_benchmark_dims *d,
            uint64_t i)
{
    const uint64_t last = d->rank ? (uint64_t)d->min[d->rank - 1] : 1;
    switch (role) {
    case IDS:
        return (int64_t)(next_random(&m->random) % m->vocabulary);
    case MASK:
        return 1;
    case POSITIONS:
        return (int64_t)(i % last);
    case BEAM:
        return 0;
    case LAST:
        return m->n_tokens - 1;
    case RANDOM:
    case N_ROLES:
        break;
    }
    return (int64_t)(next_random(&m->random) & 1);
}

static void
fill_values(struct maker *m, size_t input, struct xm_benchmark_tensor *t)
{
    const enum xm_element e = (enum xm_element)port_of(m, input)->type;
    const bool is_whole = xm_element_is_int(e);
    uint64_t n = 1;
    if (!xm_element_writable(e)) {
        fill_bytes(m, t);
        return;
    }
    for (uint32_t i = 0; i < t->dims.rank; i++)
        n *= (uint64_t)t->dims.min[i];
    for (uint64_t i = 0; i < n; i++) {
        if (is_whole)
            xm_store_int(e, t->data, i, whole_value(m, m->roles[input], &t->dims, i));
        else
            xm_store_float(e, t->data, i,
                           (float)(next_random(&m->random) % 4096) / 4096.0f);
    }
}

/* Sets the shape of an input's tensor in a set, and allocates its zeroed memory. */
static enum xm_status
size_tensor(struct maker *m, size_t input, size_t set, struct xm_benchmark_tensor *t)
{
    const struct xm_benchmark_port *p = port_of(m, input);
    uint64_t n = 1;
    bool fits = xm_element_bits((enum xm_element)p->type) > 0;
    XM_TRY(find_shape(m, input, set, &t->dims));
    for (uint32_t i = 0; i < t->dims.rank; i++)
        fits = fits && xm_mul_size(n, (uint64_t)t->dims.min[i], &n);
    if (!fits || !xm_element_bytes((enum xm_element)p->type, n, &t->bytes))
        return xm_fail(m->err, XM_UNSUPPORTED,
                       "input '%s' of type %s cannot be filled, or is too large", p->name,
                       xm_element_text((enum xm_element)p->type));
    t->data = xm_calloc((size_t)t->bytes + 1, 1);
    return t->data ? XM_OK : xm_no_memory(m->err, "input '%s'", p->name);
}

/* Loads an input's file; does nothing for an input without a file. */
static enum xm_status
load_tensor(struct maker *m, size_t input, size_t set, struct xm_benchmark_tensor *t)
{
    return xm_benchmark_files_has(&m->files, input)
               ? xm_benchmark_files_load(&m->files, input, set, port_of(m, input), t,
                                         m->err)
               : XM_OK;
}

/* ---- messages ------------------------------------------------------------------------------ */

static void
say_input(const struct maker *m, size_t i)
{
    static const char *const texts[N_ROLES] = {[MASK] = "ones",
                                               [POSITIONS] = "counting positions",
                                               [BEAM] = "beam index 0",
                                               [LAST] = "the last token's number"};
    const char *name = port_of(m, i)->name;
    if (xm_benchmark_files_has(&m->files, i)) {
        xm_benchmark_info("Fill input '%s' from files", name);
    } else if (m->roles[i] == IDS) {
        xm_benchmark_info("Fill input '%s' with token ids below %" PRIu64, name,
                          m->vocabulary);
    } else if (m->roles[i] != RANDOM) {
        xm_benchmark_info("Fill input '%s' with %s", name, texts[m->roles[i]]);
    } else {
        xm_benchmark_warn("No input files were given for input '%s'!. This input will be "
                          "filled with random values!",
                          name);
        xm_benchmark_info("Fill input '%s' with random values ", name);
    }
}

void
xm_benchmark_group_print(const struct xm_benchmark_inputs *in, size_t group,
                         struct xm_strbuf *out)
{
    for (size_t i = 0; i < in->ports->n; i++) {
        xm_strbuf_printf(out, "%s%s: ", i ? " " : "", in->ports->list[i].name);
        xm_benchmark_dims_print(&xm_benchmark_set(in, group)[i].dims, out);
    }
}

static void
say_groups(const struct maker *m)
{
    struct xm_strbuf text = {0};
    xm_benchmark_info("Defined %zu tensor groups:", m->out->n_groups);
    for (size_t g = 0; g < m->out->n_groups; g++) {
        xm_strbuf_clear(&text);
        xm_benchmark_group_print(m->out, g, &text);
        xm_benchmark_info("\t %s", xm_strbuf_text(&text));
    }
    xm_strbuf_free(&text);
}

/* Warns if -data_shape differs from the shape that the model fixes for an input. */
static void
warn_of_fixed(const struct maker *m, size_t i)
{
    const struct xm_benchmark_port *p = port_of(m, i);
    const struct xm_benchmark_shape *said =
        xm_benchmark_shapes_find(m->shapes, p->name, 0);
    struct xm_strbuf text = {0};
    if (!said || !xm_benchmark_dims_are_fixed(&p->dims) ||
        (xm_benchmark_shapes_count(m->shapes, p->name) == 1 &&
         xm_benchmark_dims_equal(&said->dims, &p->dims)))
        return;
    xm_benchmark_dims_print(&p->dims, &text);
    xm_benchmark_warn("-data_shape: input '%s' keeps its fixed shape, %s", p->name,
                      xm_strbuf_text(&text));
    xm_strbuf_free(&text);
}

static void
say_inputs(const struct maker *m)
{
    int64_t size[2];
    char otherwise[80] = "";
    if (m->out->is_language && !find_tokens(m, 0, size))
        snprintf(otherwise, sizeof(otherwise),
                 " (%" PRId64 " x %" PRId64 " tokens without -data_shape)", size[0],
                 size[1]);
    if (m->out->is_language)
        xm_benchmark_info("The model is a language model: its state is reset before each "
                          "inference, and inputs without a file get valid tokens%s",
                          otherwise);
    for (size_t i = 0; i < m->model->inputs.n; i++) {
        warn_of_fixed(m, i);
        say_input(m, i);
    }
    if (m->out->n_groups > 1)
        say_groups(m);
}

/* ---- all sets ---------------------------------------------------------------------- */

/* Finds the files, the roles, and the number of sets. */
static enum xm_status
plan_sets(struct maker *m)
{
    const size_t n = m->model->inputs.n;
    XM_TRY(xm_benchmark_files_find(m->args, &m->model->inputs, &m->files, m->err));
    m->roles = xm_calloc(n + 1, sizeof(*m->roles));
    if (!m->roles)
        return xm_no_memory(m->err, "inputs");
    find_roles(m);
    return count_sets(m);
}

static enum xm_status
check_sets(struct maker *m)
{
    XM_TRY(plan_sets(m));
    for (size_t set = 0; set < m->out->n_sets; set++) {
        for (size_t i = 0; i < m->model->inputs.n; i++) {
            struct xm_benchmark_tensor t = {0};
            enum xm_status s = size_tensor(m, i, set, &t);
            if (s == XM_OK)
                s = load_tensor(m, i, set, &t);
            xm_free(t.data);
            XM_TRY(s);
        }
    }
    return XM_OK;
}

static enum xm_status
make_set(struct maker *m, size_t set)
{
    struct xm_benchmark_dims ids = {0};
    if (m->out->is_language)
        XM_TRY(find_shape(m, m->out->ids, set, &ids));
    m->n_tokens = ids.max[1];
    for (size_t i = 0; i < m->model->inputs.n; i++) {
        struct xm_benchmark_tensor *t = &m->out->list[set * m->model->inputs.n + i];
        XM_TRY(size_tensor(m, i, set, t));
        XM_TRY(load_tensor(m, i, set, t));
        if (!xm_benchmark_files_has(&m->files, i))
            fill_values(m, i, t);
    }
    return XM_OK;
}

static enum xm_status
make_sets(struct maker *m)
{
    XM_TRY(plan_sets(m));
    m->out->list =
        xm_calloc(m->out->n_sets * m->model->inputs.n + 1, sizeof(*m->out->list));
    if (!m->out->list)
        return xm_no_memory(m->err, "inputs");
    for (size_t set = 0; set < m->out->n_sets; set++)
        XM_TRY(make_set(m, set));
    say_inputs(m);
    return XM_OK;
}

static enum xm_status
with_maker(enum xm_status (*run)(struct maker *m), const struct xm_benchmark_model *model,
           const struct xm_benchmark_args *args, const struct xm_benchmark_shapes *shapes,
           struct xm_benchmark_inputs *out, struct xm_error *err)
{
    struct maker m = {.model = model,
                      .args = args,
                      .shapes = shapes,
                      .out = out,
                      .random = 0x9e3779b97f4a7c15u,
                      .err = err};
    *out = (struct xm_benchmark_inputs){.ports = &model->inputs};
    const enum xm_status s = run(&m);
    xm_benchmark_files_free(&m.files);
    xm_free(m.roles);
    return s;
}

enum xm_status
xm_benchmark_inputs_check(const struct xm_benchmark_model *model,
                          const struct xm_benchmark_args *args,
                          const struct xm_benchmark_shapes *shapes, struct xm_error *err)
{
    struct xm_benchmark_inputs none;
    return with_maker(check_sets, model, args, shapes, &none, err);
}

enum xm_status
xm_benchmark_inputs_make(const struct xm_benchmark_model *model,
                         const struct xm_benchmark_args *args,
                         const struct xm_benchmark_shapes *shapes,
                         struct xm_benchmark_inputs *out, struct xm_error *err)
{
    return with_maker(make_sets, model, args, shapes, out, err);
}

void
xm_benchmark_inputs_free(struct xm_benchmark_inputs *in)
{
    for (size_t i = 0; in->list && i < in->n_sets * in->ports->n; i++)
        xm_free(in->list[i].data);
    xm_free(in->list);
    *in = (struct xm_benchmark_inputs){0};
}

uint64_t
xm_benchmark_inputs_tokens(const struct xm_benchmark_inputs *in, size_t set)
{
    const struct xm_benchmark_dims *d = &xm_benchmark_set(in, set)[in->ids].dims;
    return in->is_language ? (uint64_t)d->min[0] * (uint64_t)d->min[1] : 0;
}

uint64_t
xm_benchmark_inputs_batch(const struct xm_benchmark_inputs *in, size_t set)
{
    for (size_t i = 0; i < in->ports->n; i++) {
        const int at = xm_benchmark_layout_batch(in->ports->list[i].layout,
                                                 in->ports->list[i].dims.rank);
        const struct xm_benchmark_dims *d = &xm_benchmark_set(in, set)[i].dims;
        if (at >= 0 && (uint32_t)at < d->rank)
            return (uint64_t)d->min[at];
    }
    return 1;
}
