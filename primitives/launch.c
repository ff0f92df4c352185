/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes launch sizes from the launch shape of a row and the sizes of a run.
 */
#include "primitives/launch.h"

#include <assert.h>

#include "primitives/args.h"
#include "primitives/matrix_engine.h"

/* Work-items of an XM_SPAN launch for each compute unit: enough for an even load, few enough to
 * start quickly; sub-groups of a work-group on GPUs. */
enum { ITEMS_PER_UNIT = 4, GROUPED_SUB_GROUPS = 4 };

static uint64_t
divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

uint64_t
xm_launch_lanes(const struct xm_launch_shape *s, const struct xm_device_info *device)
{
    if (s->size == XM_MATRIX_LANES)
        return xm_matrix_lanes(device);
    return s->size ? s->size : XM_SUB_GROUP;
}

/* Returns the work-items of one unit. */
static uint64_t
unit_items(const struct xm_launch_shape *s, const struct xm_device_info *device,
           const struct xm_counts *c)
{
    switch (s->unit) {
    case XM_GROUP:
        return s->size ? s->size : c->items;
    case XM_LANES:
        return xm_launch_lanes(s, device);
    default:
        return 1;
    }
}

static uint64_t
count_of(const struct xm_counts *c, enum xm_axis axis)
{
    return axis == XM_ONE ? 1 : c->n[axis];
}

/* Returns the units along y or z; 1 for a dimension that is not used. */
static uint64_t
units_across(const struct xm_side *s, const struct xm_counts *c, uint64_t lanes)
{
    return s->per ? divide_up(count_of(c, s->axis),
                              s->per * (s->take == XM_PER_LANE ? lanes : 1))
                  : 1;
}

static uint64_t
units_along(const struct xm_side *s, const struct xm_counts *c, uint64_t per)
{
    uint64_t units = 0;
    if (s->axis != XM_ROWS || c->n_parts == 0)
        return divide_up(count_of(c, s->axis), per);
    for (uint32_t i = 0; i < c->n_parts; i++)
        units += divide_up(c->part[i], per);
    return units;
}

static uint64_t
per_unit(const struct xm_launch_shape *s, const struct xm_device_info *device,
         const struct xm_counts *c, uint64_t lanes, uint64_t copies)
{
    uint64_t least = s->x.per ? s->x.per : 1;
    if (s->x.take != XM_SHARED)
        return least * (s->x.take == XM_PER_LANE ? lanes : 1);
    return xm_row_blocks_per_item(device, count_of(c, s->x.axis), copies,
                                  s->x.per ? least : c->block);
}

/* Returns the sub-groups of a work-group. */
static uint64_t
sub_groups(const struct xm_launch_shape *s, const struct xm_device_info *device)
{
    /* even if XM_DEVICE_AS makes a CPU look like a GPU */
    bool cpu = xm_device_really_has(device, XM_CAP_HOST_VISIBLE);
    if (s->split)
        return s->split;
    return cpu ? 1 : GROUPED_SUB_GROUPS;
}

struct xm_launch
xm_launch_for(const struct xm_launch_shape *s, const struct xm_device_info *device,
              const struct xm_counts *c, uint64_t *per_item)
{
    const uint64_t items = unit_items(s, device, c);
    assert(items > 0); /* XM_GROUP of size 0: the run must set xm_counts.items */
    const uint64_t y = units_across(&s->y, c, items), z = units_across(&s->z, c, items);
    const uint64_t per = per_unit(s, device, c, items, y * z);
    const uint64_t most = (uint64_t)device->compute_units * ITEMS_PER_UNIT;
    uint64_t x = units_along(&s->x, c, per), group = items;
    if (s->unit == XM_SPAN && most > 0 && x > most)
        x = most;
    if (s->unit == XM_LANES)
        group = items * sub_groups(s, device);
    if (s->split)
        x *= s->split;
    *per_item = per;
    const struct xm_launch driver_chooses = {{x, y, z}, {0, 0, 0}};
    const struct xm_launch launch = {{xm_align_up(x * items, group), y, z},
                                     {group, 1, 1}};
    return s->unit == XM_ITEM ? driver_chooses : launch;
}

enum xm_status
xm_launch(const struct xm_launch_shape *shape, struct xm_kernel *kernel,
          const struct xm_counts *counts, const struct xm_args *args,
          struct xm_queue *queue, struct xm_error *err)
{
    const struct xm_device_info *device = xm_engine_info(xm_queue_engine(queue));
    uint64_t per_item = 0;
    const struct xm_launch launch = xm_launch_for(shape, device, counts, &per_item);
    struct xm_args all = *args;
    if (launch.global[0] == 0 || launch.global[1] == 0 || launch.global[2] == 0)
        return XM_OK;
    if (shape->x.take == XM_SHARED)
        xm_put_uint(&all, "per_item", per_item);
    return xm_queue_run(queue, kernel, all.arg, all.n, &launch, err);
}
