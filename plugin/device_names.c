/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/device_names.h"

#include <stdio.h>
#include <string.h>

#include "runtime/util/compiler.h"

/* `lack`: the feature that users expect of the name and do not get; NULL: none is missing.
 * is_of_several: the feature is missing only if the list has several devices. needs_all: as
 * xm_device_needs_all; true for HETERO, whose devices must all exist, while AUTO and MULTI use
 * those that do. */
#define XM_OTHERS_UNUSED                                                                 \
    "the other devices of the list are not used; MESH: with the same list splits the "   \
    "model over them"
static const struct row {
    const char *name, *lack;
    bool is_of_several, needs_all;
} rows[] = {
    {"HETERO", XM_OTHERS_UNUSED, true, true},
    {"MULTI", XM_OTHERS_UNUSED, true, false},
    {"BATCH", "requests run one by one and are not combined into batches", false, false},
};

static const struct row *
find_row(const char *device)
{
    const size_t n = strcspn(device, ":");
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, device, n) == 0)
            return &rows[i];
    }
    return NULL;
}

const char *
xm_device_lack(const char *device, uint32_t *bit)
{
    char name[XM_DEVICE_NAME];
    const struct row *row = find_row(device);
    uint32_t n = 0;
    for (const char *list = xm_device_list(device);
         list && xm_device_list_next(&list, name);)
        n += name[0] != '-';
    if (!row || !row->lack || (row->is_of_several && n < 2))
        return NULL;
    *bit = 1u << (row - rows);
    return row->lack;
}

bool
xm_device_needs_all(const char *device, uint32_t *bit)
{
    const struct row *row = find_row(device);
    if (!row || !row->needs_all)
        return false;
    *bit = 1u << (XM_ARRAY_LEN(rows) + (size_t)(row - rows));
    return true;
}

bool
xm_device_is_batch(const char *device)
{
    const struct row *row = device ? find_row(device) : NULL;
    return row && strcmp(row->name, "BATCH") == 0;
}

/* ---- compiling --------------------------------------------------------------------- */

static const char priorities[] = "MULTI_DEVICE_PRIORITIES";

static const char *
find_value(const struct xm_device_wish *w, const char *key)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (strcmp(w->properties[i].key, key) == 0)
            return w->properties[i].value;
    }
    return NULL;
}

enum xm_status
xm_device_wish_make(const char *device, const struct xm_property *properties,
                    uint32_t n_properties, struct xm_device_wish *out,
                    struct xm_error *err)
{
    *out = (struct xm_device_wish){.device = device,
                                   .list = device ? xm_device_list(device) : ""};
    out->properties = xm_calloc(n_properties + 2, sizeof(*out->properties));
    if (!out->properties)
        return xm_no_memory(err, "%u properties", n_properties);
    for (uint32_t i = 0; i < n_properties; i++)
        out->properties[out->n++] = properties[i];
    const char *value = find_value(out, priorities);
    if (!out->list || out->list[0] || !value || !value[0])
        return XM_OK;
    struct xm_strbuf name = {0};
    xm_strbuf_printf(&name, "AUTO:%s", value);
    out->device = out->name = xm_strbuf_take(&name);
    return out->name ? XM_OK : xm_no_memory(err, "a device's name");
}

static void
drop_priorities(struct xm_device_wish *w)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        if (strcmp(w->properties[i].key, priorities) != 0)
            w->properties[kept++] = w->properties[i];
    }
    w->n = kept;
}

void
xm_device_wish_tell(struct xm_device_wish *w, const struct xm_plugin *p,
                    const uint32_t *index)
{
    const bool is_opencl =
        p->ops->info != NULL; /* other plugins need not know these properties */
    if (w->list && !is_opencl)
        drop_priorities(w);
    else if (w->list && w->list[0] && !find_value(w, priorities))
        w->properties[w->n++] = (struct xm_property){priorities, w->list};
    if (index && is_opencl) {
        snprintf(w->index, sizeof(w->index), "%u", *index);
        w->properties[w->n++] = (struct xm_property){"DEVICE_ID", w->index};
    }
}

void
xm_device_wish_free(struct xm_device_wish *w)
{
    xm_free(w->name);
    xm_free(w->properties);
    *w = (struct xm_device_wish){0};
}
