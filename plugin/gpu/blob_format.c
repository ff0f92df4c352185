/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/gpu/blob_format.h"

#include <string.h>

#include "runtime/util/checksum.h"

int
xm_blob_view_order(const void *left, const void *right)
{
    const struct xm_blob_view *a = left, *b = right;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return (a->part > b->part) - (a->part < b->part);
}

bool
xm_blob_has_option(enum xm_option o)
{
    size_t n;
    return xm_option_rows(&n)[o].list == XM_OPTIONS_PROGRAM && o != XM_OPTION_device_id &&
           o != XM_OPTION_cache_mode && o != XM_OPTION_weightless &&
           o != XM_OPTION_weights_path;
}

bool
xm_blob_decides_graph(enum xm_option o)
{
    return o == XM_OPTION_inference_precision || o == XM_OPTION_accuracy_mode ||
           o == XM_OPTION_sequences || o == XM_OPTION_rounds_as_trained;
}

void
xm_blob_identity(const struct xm_device_info *d, struct xm_strbuf *out)
{
    const char *processor = xm_kernel_cache_processor();
    xm_strbuf_printf(out,
                     "xemoe %s\ndevice %s\ndriver %s; %s\nchip 0x%x 0x%x %u.%u.%u\n"
                     "capabilities 0x%x 0x%x\nprocessor %016llx\n",
                     XM_VERSION, d->name, d->driver, d->version, d->vendor_id,
                     d->device_id, d->ip_major, d->ip_minor, d->ip_revision, d->caps,
                     d->pretended,
                     (unsigned long long)xm_checksum(processor, strlen(processor)));
}

uint64_t
xm_blob_header_checksum(const struct xm_blob_header *h)
{
    struct xm_blob_header copy = *h;
    copy.checksum = 0;
    return xm_checksum(&copy, sizeof(copy));
}
