/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses a row of a variant table: the one that XM_FORCE asks for, the one measured fastest, or
 * the first that does not refuse and builds.
 */
#include "primitives/variant.h"

#include <stdlib.h>
#include <string.h>

#include "primitives/matrix_engine.h"
#include "primitives/measured_rows.h"
#include "runtime/kernel_defines.h"
#include "runtime/util/compiler.h"
#include "runtime/util/log.h"
#include "runtime/util/strbuf.h"

enum { INTEL = 0x8086 };

/* Capabilities that kernels emulate, slowly, on devices without them:
 * kernels/cl/include/matrix_mad.h, integer_mad.h, amx.h. */
enum { EMULATED = XM_CAP_DPAS | XM_CAP_DP4A | XM_CAP_AMX };

static const char *
family_refusal(enum xm_family family, const struct xm_device_info *device)
{
    switch (family) {
    case XM_FAMILY_VEC:
        return device->kind == XM_DEVICE_CPU ? NULL
                                             : "the kernel is written for CPU devices";
    case XM_FAMILY_SG:
        return xm_device_really_has(device, XM_CAP_SUBGROUPS | XM_CAP_REQD_SG_SIZE)
                   ? NULL
                   : "the device has no sub-groups of a required size";
    case XM_FAMILY_HOST:
        return xm_device_really_has(device, XM_CAP_HOST_VISIBLE)
                   ? NULL
                   : "the host cannot read the device's memory";
    case XM_FAMILY_ONEDNN:
        return device->kind == XM_DEVICE_GPU && device->vendor_id == INTEL
                   ? NULL
                   : "oneDNN's GPU engine needs an Intel GPU";
    default:
        return NULL;
    }
}

const char *
xm_variant_refusal(const struct xm_variant *row, const struct xm_device_info *device,
                   const void *problem)
{
    const char *why = family_refusal(row->family, device);
    if (why)
        return why;
    if (!xm_device_really_has(device, row->caps & ~(uint32_t)EMULATED))
        return "the device lacks a capability that the kernel needs";
    return row->refuses ? row->refuses(problem) : NULL;
}

static bool
is_emulated(const struct xm_variant *row, const struct xm_device_info *device)
{
    return !xm_device_really_has(device, row->caps & EMULATED);
}

const char *
xm_variant_drawback(const struct xm_variant *row, const struct xm_device_info *device)
{
    if (is_emulated(row, device))
        return "the kernel would emulate matrix products that the device lacks";
    if (device->kind != XM_DEVICE_CPU)
        return NULL;
    switch (row->family) {
    case XM_FAMILY_GEN:
        return "the kernel is written for GPUs: a CPU device emulates work-groups";
    case XM_FAMILY_SG:
        return "the kernel is written for GPUs: a CPU device emulates sub-groups";
    default:
        return NULL;
    }
}

struct xm_variant_defines
xm_variant_defines(const struct xm_variant *row, const struct xm_device_info *device)
{
    struct xm_variant_defines d = {""};
    const struct xm_launch_shape *l = &row->launch;
    size_t n = sizeof(d.text), used = 0;
    if (l->unit == XM_GROUP && l->size)
        used += xm_defines_print(d.text, n, " -DITEMS=%u", l->size);
    if (l->split)
        used += xm_defines_print(d.text + used, n - used,
                                 row->shares ? " -DSHARES=%u" : " -DSPLIT=%u", l->split);
    if (l->x.axis == XM_ROWS && l->x.per)
        used += xm_defines_print(d.text + used, n - used, " -DROWS=%u", l->x.per);
    if (row->form == XM_FORM_SHORTS || row->form == XM_FORM_BYTES)
        used += xm_defines_print(d.text + used, n - used, " -DSHORTS=1 -DX_BYTES=%d",
                                 row->form == XM_FORM_BYTES);
    if (row->caps & XM_CAP_DP4A)
        used += xm_defines_print(d.text + used, n - used,
                                 " -DSG=%u -DDP4A=1 -DDOT_PRODUCTS=%d", l->size,
                                 xm_device_really_has(device, XM_CAP_DP4A));
    if (row->caps & XM_CAP_AMX)
        used += xm_defines_print(d.text + used, n - used, " -DAMX=%d",
                                 xm_device_really_has(device, XM_CAP_AMX));
    if (l->size == XM_MATRIX_LANES || row->form == XM_FORM_STEPS)
        used += xm_defines_print(d.text + used, n - used, " -DSG=%u -DMATRIX_ENGINE=%d",
                                 xm_matrix_lanes(device), xm_matrix_is_real(device));
    if (row->large_grf && xm_matrix_is_real(device))
        xm_defines_print(d.text + used, n - used, " -cl-intel-256-GRF-per-thread");
    return d;
}

/* ---- XM_FORCE ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    enum xm_family family;
} families[] = {
    {"ref", XM_FAMILY_ANY}, {"vec", XM_FAMILY_VEC},   {"gen", XM_FAMILY_GEN},
    {"sg", XM_FAMILY_SG},   {"host", XM_FAMILY_HOST}, {"onednn", XM_FAMILY_ONEDNN},
};

static bool
is_text(const char *text, const char *start, size_t len)
{
    return strlen(text) == len && strncmp(text, start, len) == 0;
}

static const enum xm_family *
family_named(const char *name, size_t len)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(families); i++)
        if (is_text(families[i].name, name, len))
            return &families[i].family;
    return NULL;
}

/* Fails with an error that lists the known names: the rows of `table`, or, if it is NULL, all
 * steps. */
static enum xm_status
fail_unknown(const char *name, size_t len, const struct xm_variant_table *table,
             struct xm_error *err)
{
    struct xm_strbuf known = {0};
    size_t n = 0;
    const struct xm_variant_table *all = xm_variant_tables(&n);
    for (size_t i = 0; i < (table ? table->n : n); i++)
        xm_strbuf_printf(&known, "%s%s", i ? " " : "",
                         table ? table->rows[i].name : all[i].step);
    if (table)
        xm_fail(err, XM_NOT_FOUND,
                "XM_FORCE: step %s has no variant '%.*s'; its variants are %s",
                table->step, (int)len, name, xm_strbuf_text(&known));
    else
        xm_fail(err, XM_NOT_FOUND, "XM_FORCE: there is no step '%.*s'; the steps are %s",
                (int)len, name, xm_strbuf_text(&known));
    xm_strbuf_free(&known);
    return XM_NOT_FOUND;
}

/* Looks up one <step>=<variant>; the step of `own` need not be among all tables. Sets *out if the
 * step is that of `own`. */
static enum xm_status
read_item(const char *step, size_t step_len, const char *variant, size_t variant_len,
          const struct xm_variant_table *own, struct xm_forced *out, struct xm_error *err)
{
    size_t n = 0;
    const struct xm_variant_table *all = xm_variant_tables(&n), *table = NULL;
    for (size_t i = 0; i < n && !table; i++)
        table = is_text(all[i].step, step, step_len) ? &all[i] : NULL;
    if (is_text(own->step, step, step_len))
        table = own;
    if (!table)
        return fail_unknown(step, step_len, NULL, err);
    size_t i = 0;
    while (i < table->n && !is_text(table->rows[i].name, variant, variant_len))
        i++;
    if (i == table->n)
        return fail_unknown(variant, variant_len, table, err);
    if (table == own) {
        out->has_row = true;
        out->row = i;
    }
    return XM_OK;
}

/* At most three digits, because no table has 1000 rows. */
static bool
is_number(const char *text, size_t len)
{
    return len > 0 && len < 4 && text[0] != '0' && strspn(text, "0123456789") >= len;
}

static enum xm_status
parse_force(const struct xm_variant_table *own, struct xm_forced *out,
            struct xm_error *err)
{
    const char *at = xm_env("XM_FORCE");
    *out = (struct xm_forced){.is_read = true};
    while (at && *at) {
        size_t len = strcspn(at, ",");
        const char *equals = memchr(at, '=', len);
        if (is_number(at, len)) {
            if (out->nth)
                return xm_fail(err, XM_INVALID, "XM_FORCE has a second number, '%.*s'",
                               (int)len, at);
            out->nth = strtoul(at, NULL, 10);
        } else if (equals && equals > at) {
            size_t step_len = (size_t)(equals - at);
            XM_TRY(
                read_item(at, step_len, equals + 1, len - step_len - 1, own, out, err));
        } else {
            const enum xm_family *family = family_named(at, len);
            if (!family)
                return xm_fail(err, XM_INVALID,
                               "XM_FORCE: '%.*s' is neither <step>=<variant> nor a "
                               "family (ref vec gen sg host onednn) nor a number from 1",
                               (int)len, at);
            out->has_family = true;
            out->family = *family;
        }
        at += len + (at[len] == ',');
    }
    return XM_OK;
}

enum xm_status
xm_variant_check_force(struct xm_error *err)
{
    static const struct xm_variant_table none = {.step = ""};
    struct xm_forced forced;
    return parse_force(&none, &forced, err);
}

enum xm_status
xm_variant_prepare(struct xm_pick *p, const struct xm_engine *engine,
                   struct xm_error *err)
{
    p->is_measured = xm_measured_row(engine, p->table, &p->problems, &p->measured);
    p->wrong = 0;
    for (size_t i = 0; i < p->table->n; i++)
        p->wrong |= (uint32_t)xm_row_is_wrong(engine, p->table, i) << i;
    return parse_force(p->table, &p->forced, err);
}

/* ---- choosing ------------------------------------------------------------------------ */

static bool
is_left_out(const struct xm_pick *p, size_t row)
{
    return p->not_built >> row & 1;
}

static bool
is_wrong(const struct xm_pick *p, size_t row)
{
    return p->wrong >> row & 1;
}

static const char *
refusal(const struct xm_pick *p, size_t row, const struct xm_device_info *device,
        const void *problem)
{
    return p->not_forms >> p->table->rows[row].form & 1
               ? "a step that shares its activations cannot use their format"
               : xm_variant_refusal(&p->table->rows[row], device, problem);
}

static enum xm_status
choose_named(const struct xm_pick *p, size_t i, const struct xm_device_info *device,
             const void *problem, size_t *row, struct xm_error *err)
{
    const struct xm_variant_table *t = p->table;
    const char *why = refusal(p, i, device, problem);
    if (why)
        return xm_fail(err, XM_UNSUPPORTED,
                       "%s: XM_FORCE asks for %s, which cannot run: %s", t->step,
                       t->rows[i].name, why);
    if (is_left_out(p, i))
        return xm_fail(err, XM_NOT_BUILT,
                       "%s: XM_FORCE asks for %s, which does not build: %s", t->step,
                       t->rows[i].name, p->first.text);
    xm_debug(XM_DEBUG_DISPATCH, "%s: %s (forced)", t->step, t->rows[i].name);
    *row = i;
    return XM_OK;
}

static bool
choose_of_family(const struct xm_pick *p, enum xm_family family,
                 const struct xm_device_info *device, const void *problem, size_t *row)
{
    const struct xm_variant_table *t = p->table;
    for (size_t i = 0; i < t->n; i++) {
        if (t->rows[i].family != family || is_left_out(p, i) ||
            is_emulated(&t->rows[i], device) || refusal(p, i, device, problem))
            continue;
        xm_debug(XM_DEBUG_DISPATCH, "%s: %s (its family is forced)", t->step,
                 t->rows[i].name);
        *row = i;
        return true;
    }
    return false;
}

/* Sets *row to the nth row that can run (without emulation), or to the last if there are fewer;
 * drawbacks are ignored. False: no row can run. */
static bool
choose_nth(const struct xm_pick *p, size_t nth, const struct xm_device_info *device,
           const void *problem, size_t *row)
{
    const struct xm_variant_table *t = p->table;
    size_t n = 0;
    for (size_t i = 0; i < t->n && n < nth; i++) {
        if (is_left_out(p, i) || is_emulated(&t->rows[i], device) ||
            refusal(p, i, device, problem))
            continue;
        *row = i;
        n++;
    }
    if (n > 0)
        xm_debug(XM_DEBUG_DISPATCH, "%s: %s (its number is forced)", t->step,
                 t->rows[*row].name);
    return n > 0;
}

static bool
choose_measured(const struct xm_pick *p, const struct xm_device_info *device,
                const void *problem, size_t *row)
{
    const struct xm_variant *measured = &p->table->rows[p->measured];
    if (!p->is_measured || is_left_out(p, p->measured) || is_wrong(p, p->measured) ||
        xm_variant_drawback(measured, device) || refusal(p, p->measured, device, problem))
        return false;
    xm_debug(XM_DEBUG_DISPATCH, "%s: %s (measured)", p->table->step, measured->name);
    *row = p->measured;
    return true;
}

enum xm_status
xm_variant_pick(const struct xm_pick *p, const struct xm_device_info *device,
                const void *problem, size_t *row, struct xm_error *err)
{
    const struct xm_variant_table *t = p->table;
    struct xm_forced forced = p->forced;
    if (!forced.is_read)
        XM_TRY(parse_force(t, &forced, err));
    if (forced.has_row)
        return choose_named(p, forced.row, device, problem, row, err);
    if (forced.has_family && choose_of_family(p, forced.family, device, problem, row))
        return XM_OK;
    if (forced.nth && choose_nth(p, forced.nth, device, problem, row))
        return XM_OK;
    if (choose_measured(p, device, problem, row))
        return XM_OK;
    const char *why = "it has no variants";
    for (size_t i = 0; i < t->n; i++) {
        why = refusal(p, i, device, problem);
        if (!why)
            why = xm_variant_drawback(&t->rows[i], device);
        if (!why && is_left_out(p, i))
            why = "it does not build";
        if (!why && is_wrong(p, i))
            why = "it computed wrong results when it was measured on this device";
        if (!why) {
            xm_debug(XM_DEBUG_DISPATCH, "%s: %s", t->step, t->rows[i].name);
            *row = i;
            return XM_OK;
        }
        xm_debug(XM_DEBUG_DISPATCH, "%s: %s refused: %s", t->step, t->rows[i].name, why);
    }
    if (p->not_built)
        return xm_fail(err, XM_NOT_BUILT, "%s: no kernel variant builds: %s", t->step,
                       p->first.text);
    return xm_fail(err, XM_UNSUPPORTED, "%s: no kernel variant can run: %s", t->step,
                   why);
}

/* ---- choosing and building ------------------------------------------------------------ */

void
xm_variant_leave_out(struct xm_pick *p, size_t row, const struct xm_error *why)
{
    if (!p->not_built)
        p->first = *why;
    p->not_built |= 1u << row;
}

/* The loop ends, because each turn but the last leaves out one more row. */
enum xm_status
xm_variant_build(struct xm_pick *picks, size_t n, const struct xm_engine *engine,
                 xm_variant_build_fn build, void *ctx, struct xm_error *err)
{
    for (size_t i = 0; i < n; i++)
        XM_TRY(xm_variant_prepare(&picks[i], engine, err));
    for (;;) {
        enum xm_status status = XM_OK;
        for (size_t i = 0; i < n; i++)
            XM_TRY(xm_variant_pick(&picks[i], xm_engine_info(engine), picks[i].problem,
                                   &picks[i].row, err));
        for (size_t i = 0; i < n && status == XM_OK; i++) {
            struct xm_error why = {0};
            status = build(ctx, i, &why);
            if (status == XM_NOT_BUILT)
                xm_variant_leave_out(&picks[i], picks[i].row, &why);
            else if (status != XM_OK)
                return xm_fail(err, status, "%s", why.text);
        }
        if (status == XM_OK)
            return XM_OK;
    }
}
