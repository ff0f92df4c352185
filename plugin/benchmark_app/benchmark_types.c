/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_types.h"

#include <stdio.h>
#include <string.h>

#include "runtime/util/element.h"
#include "xemoe/xemoe.h"

enum { KINDS = 2 }; /* kinds of ports: inputs and outputs */

static enum xm_element
parse(struct xm_slice type)
{
    char text[32];
    if (type.n >= sizeof(text))
        return XM_ELEMENT_COUNT;
    snprintf(text, sizeof(text), "%.*s", (int)type.n, type.text);
    return xm_element_parse(text);
}

enum xm_status
xm_benchmark_types_read(const struct xm_benchmark_args *a, struct xm_error *err)
{
    const char *const rows[][2] = {{"-ip", a->ip},
                                   {"-op", a->op},
                                   {"-iop", a->iop},
                                   {"-infer_precision", a->infer_precision}};
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        const char *text = rows[i][1];
        struct xm_slice rest = xm_slice_of(text, text ? strlen(text) : 0), name, type;
        while (xm_benchmark_next_item(&rest, &name, &type)) {
            if (parse(type) == XM_ELEMENT_COUNT)
                return xm_fail(
                    err, XM_INVALID,
                    "option %s takes element types such as f32 and i64, found '%.*s'",
                    rows[i][0], (int)type.n, type.text);
        }
    }
    return XM_OK;
}

/* Returns the value for port `i`, or for all ports; n 0: none. */
static struct xm_slice
value_for(const char *text, const struct xm_benchmark_ports *ports, size_t i)
{
    struct xm_slice rest = xm_slice_of(text, strlen(text)), of_all = {"", 0}, name, value;
    while (xm_benchmark_next_item(&rest, &name, &value)) {
        if (name.n == 0)
            of_all = value;
        else if (xm_benchmark_ports_find(ports, name) == i)
            return value;
    }
    return of_all;
}

static enum xm_status
check_names(const char *flag, const char *text,
            const struct xm_benchmark_ports *const ports[KINDS], struct xm_error *err)
{
    struct xm_slice rest = xm_slice_of(text, strlen(text)), name, type;
    while (xm_benchmark_next_item(&rest, &name, &type)) {
        bool is_known = name.n == 0;
        for (size_t k = 0; k < KINDS && ports[k] && !is_known; k++)
            is_known = xm_benchmark_ports_find(ports[k], name) < ports[k]->n;
        if (!is_known)
            return xm_fail(err, XM_INVALID, "%s: the model has no node '%.*s'", flag,
                           (int)name.n, name.text);
    }
    return XM_OK;
}

/* Returns the flag with a type for port `i`, and its value; NULL: none. -iop has precedence. */
static const char *
flag_for(const struct xm_benchmark_args *a, const struct xm_benchmark_ports *ports,
         size_t i, struct xm_slice *said)
{
    const char *const flags[][2] = {
        {"-iop", a->iop},
        {ports->are_outputs ? "-op" : "-ip", ports->are_outputs ? a->op : a->ip}};
    *said = (struct xm_slice){"", 0};
    for (size_t k = 0; k < XM_ARRAY_LEN(flags) && said->n == 0; k++) {
        if (!flags[k][1])
            continue;
        *said = value_for(flags[k][1], ports, i);
        if (said->n)
            return flags[k][0];
    }
    return NULL;
}

/* Sets a port's type. A model that was not read keeps the types that it was compiled with: others
 * are refused. */
static enum xm_status
set_type(const struct xm_benchmark_ports *ports, size_t i, const char *flag,
         struct xm_slice said, struct xm_error *err)
{
    const struct xm_benchmark_port *p = &ports->list[i];
    const enum xm_element type = (enum xm_element)p->type;
    ov_model_t *model = ports->model->model;
    char what[48];
    if (parse(said) == type)
        return XM_OK;
    if (!model)
        return xm_fail(err, XM_UNSUPPORTED,
                       "%s %.*s: '%s' has type %s, and tensors of a compiled model are "
                       "not converted",
                       flag, (int)said.n, said.text, p->name, xm_element_text(type));
    snprintf(what, sizeof(what), "%s %.*s", flag, (int)said.n, said.text);
    const ov_element_type_e wanted = (ov_element_type_e)parse(said);
    return xm_benchmark_api(ports->are_outputs
                                ? xm_model_set_output_type(model, i, wanted)
                                : xm_model_set_input_type(model, i, wanted),
                            what, err);
}

static enum xm_status
set_types(const struct xm_benchmark_args *a, const struct xm_benchmark_ports *ports,
          struct xm_error *err)
{
    for (size_t i = 0; i < ports->n; i++) {
        struct xm_slice said;
        const char *flag = flag_for(a, ports, i, &said);
        if (flag)
            XM_TRY(set_type(ports, i, flag, said, err));
    }
    return XM_OK;
}

enum xm_status
xm_benchmark_types_set(struct xm_benchmark_model *m, const struct xm_benchmark_args *a,
                       struct xm_error *err)
{
    const struct {
        const char *flag, *text;
        const struct xm_benchmark_ports *ports[KINDS]; /* NULL: no more */
    } rows[] = {
        {"-ip", a->ip, {&m->inputs}},
        {"-op", a->op, {&m->outputs}},
        {"-iop", a->iop, {&m->inputs, &m->outputs}},
    };
    bool any = false;
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        if (rows[i].text)
            XM_TRY(check_names(rows[i].flag, rows[i].text, rows[i].ports, err));
        any |= rows[i].text != NULL;
    }
    XM_TRY(set_types(a, &m->inputs, err));
    XM_TRY(set_types(a, &m->outputs, err));
    return any && m->model ? xm_benchmark_model_update_ports(m, err) : XM_OK;
}
