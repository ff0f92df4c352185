/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/benchmark_app/benchmark_types.h"

#include <stdio.h>
#include <string.h>

#include "runtime/util/element.h"

enum { KINDS = 2 }; /* of ports that a flag speaks of */

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
                return xm_fail(err, XM_INVALID,
                               "option %s takes types as f32 and i64, and '%.*s' is none",
                               rows[i][0], (int)type.n, type.text);
        }
    }
    return XM_OK;
}

/* What is said of port `i`, or of all; n 0: nothing. */
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
check_types(const char *flag, const char *text, const struct xm_benchmark_ports *ports,
            struct xm_error *err)
{
    for (size_t i = 0; i < ports->n; i++) {
        const struct xm_benchmark_port *p = &ports->list[i];
        const struct xm_slice said = value_for(text, ports, i);
        const enum xm_element type = (enum xm_element)p->type;
        if (said.n && parse(said) != type)
            return xm_fail(err, XM_UNSUPPORTED,
                           "%s %.*s: '%s' is of type %s, and tensors are not converted",
                           flag, (int)said.n, said.text, p->name, xm_element_text(type));
    }
    return XM_OK;
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

enum xm_status
xm_benchmark_types_check(const struct xm_benchmark_model *m,
                         const struct xm_benchmark_args *a, struct xm_error *err)
{
    const struct {
        const char *flag, *text;
        const struct xm_benchmark_ports *ports[KINDS]; /* NULL: no more */
    } rows[] = {
        {"-ip", a->ip, {&m->inputs}},
        {"-op", a->op, {&m->outputs}},
        {"-iop", a->iop, {&m->inputs, &m->outputs}},
    };
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        if (!rows[i].text)
            continue;
        XM_TRY(check_names(rows[i].flag, rows[i].text, rows[i].ports, err));
        for (size_t k = 0; k < KINDS && rows[i].ports[k]; k++)
            XM_TRY(check_types(rows[i].flag, rows[i].text, rows[i].ports[k], err));
    }
    return XM_OK;
}
