/* SPDX-License-Identifier: Apache-2.0
 *
 * A primitive: one operation on a device, in four steps.
 *
 *   supports  pure, before anything is created: can this device run this descriptor, and if
 *             not, why (xm_<primitive>_supports, asked by the graph passes through xm_caps)
 *   create    from a descriptor: picks the rows of its variant table that may be needed, builds
 *             their kernels; afterwards the primitive is immutable and shared by threads
 *   plan      looks at shapes only: bytes of scratch it will want
 *   run       looks at buffers: enqueues kernels on an in-order queue; never waits
 *
 * Descriptors and operand lists are typed per primitive (primitives/<name>/<name>.h).
 */
#ifndef XM_PRIMITIVES_PRIMITIVE_H
#define XM_PRIMITIVES_PRIMITIVE_H

#include "runtime/engine.h"
#include "runtime/weight.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { XM_OPERAND_RANK = 8 };

/* A tensor on the device, dense row-major. buffer == NULL: the operand is absent. */
struct xm_operand {
    struct xm_buffer *buffer;
    enum xm_element element;
    uint32_t rank;
    int64_t dim[XM_OPERAND_RANK];
};

uint64_t xm_operand_elements(const struct xm_operand *o);
/* Product of dim[first .. rank - 1 - last_kept]; e.g. rows = elements / last dim. */
uint64_t xm_operand_rows(const struct xm_operand *o);

/* A weight whose bytes are on the device; shared by the steps that read it. */
struct xm_device_weight {
    /* sizes, element, group and order of the bytes on the device; its view says which part of the
     * stored weight they are */
    struct xm_weight host;
    /* the weight as it was before its copy took the device's form */
    struct xm_weight file;
    bool on_host; /* made by xm_host_weight_create                               */
    struct xm_buffer *data, *scale;
    struct xm_buffer *zero_point; /* or codebook, or factors; NULL where absent */
    int refs;
};
enum xm_status xm_device_weight_create(struct xm_engine *engine,
                                       const struct xm_weight *w,
                                       struct xm_device_weight **out,
                                       struct xm_error *err);
/* The same; where the device copies weights, only the bytes of the view are copied. */
enum xm_status xm_device_part_create(struct xm_engine *engine, const struct xm_weight *w,
                                     struct xm_device_weight **out, struct xm_error *err);
/* The same for a weight that the kernels are to read from host memory (xm_buffer_on_host). */
enum xm_status xm_host_weight_create(struct xm_engine *engine, const struct xm_weight *w,
                                     struct xm_device_weight **out, struct xm_error *err);
/* Another view `w` of the bytes that `of` holds in the file's form: no copy of its own. */
enum xm_status xm_device_weight_view(const struct xm_device_weight *of,
                                     const struct xm_weight *w,
                                     struct xm_device_weight **out, struct xm_error *err);
void xm_device_weight_ref(struct xm_device_weight *w);
void xm_device_weight_unref(struct xm_device_weight *w); /* NULL is allowed */

/* Tokens at once, at most, that a library's code is made for: `chunk`, which a program's
 * descriptors have from its own XM_UBATCH, or the engine's when it is 0. */
static inline uint64_t
xm_chunk_tokens(const struct xm_engine *engine, uint64_t chunk)
{
    return chunk ? chunk : xm_engine_config(engine)->ubatch;
}

/* What a primitive does with an operand. */
enum xm_role {
    XM_ROLE_NONE, /* it is never on the device: the descriptor has it */
    XM_ROLE_IN = 1,
    XM_ROLE_OUT = 2,                           /* shares no bytes with another operand */
    XM_ROLE_IN_OUT = XM_ROLE_IN | XM_ROLE_OUT, /* changed in place */
    /* and it is another operand once more, in the form that the descriptor says (form.h) */
    XM_ROLE_FORM = 4
};
/* Of primitives that read so many operands, then write so many. */
extern const uint8_t xm_roles_1_1[2], xm_roles_2_1[3], xm_roles_3_1[4], xm_roles_1_2[3];
/* clang-format off */
#define XM_ROLES(roles) roles, XM_ARRAY_LEN(roles)
/* clang-format on */

struct xm_expert_cache;

/* The last views of a scratch buffer. Layers and tokens ask for the same offsets and sizes again;
 * making a sub-buffer costs a driver call. All zeros: none. */
enum { XM_KEPT_VIEWS = 8 };
struct xm_kept_views {
    struct xm_buffer *view[XM_KEPT_VIEWS]; /* referenced */
    uint64_t offset[XM_KEPT_VIEWS];
    uint32_t oldest;
};
/* Call before the scratch is freed. */
void xm_kept_views_free(struct xm_kept_views *k);

/* The arguments of a run besides its operands. */
struct xm_run {
    struct xm_queue *queue;
    struct xm_buffer *scratch;   /* at least plan()'s bytes; NULL when that was 0 */
    struct xm_kept_views *views; /* of `scratch`; NULL: none are kept            */
    /* for moe: the cache from which it reads experts that lie in host memory; NULL: none */
    const struct xm_expert_cache *experts;
};

struct xm_primitive;
struct xm_primitive_ops {
    const char *name;
    /* Scratch bytes for these operand shapes (buffers are not looked at). */
    enum xm_status (*plan)(const struct xm_primitive *p,
                           const struct xm_operand *operands, uint64_t *scratch_bytes,
                           struct xm_error *err);
    enum xm_status (*run)(const struct xm_primitive *p, const struct xm_operand *operands,
                          const struct xm_run *run, struct xm_error *err);
    /* The kernels these shapes would use, best first: "moe_route_ref moe_gate_up_vec …". */
    void (*describe)(const struct xm_primitive *p, const struct xm_operand *operands,
                     char *out, size_t out_bytes);
    void (*destroy)(struct xm_primitive *p);
    const uint8_t *roles; /* enum xm_role, by operand */
    uint32_t n_operands;
};

/* First member of every primitive's own struct. */
struct xm_primitive {
    const struct xm_primitive_ops *ops;
    struct xm_engine *engine; /* referenced */
};

enum xm_status xm_primitive_plan(const struct xm_primitive *p,
                                 const struct xm_operand *operands,
                                 uint64_t *scratch_bytes, struct xm_error *err);
enum xm_status xm_primitive_run(const struct xm_primitive *p,
                                const struct xm_operand *operands,
                                const struct xm_run *run, struct xm_error *err);
void xm_primitive_describe(const struct xm_primitive *p,
                           const struct xm_operand *operands, char *out,
                           size_t out_bytes);
void xm_primitive_destroy(struct xm_primitive *p); /* NULL is allowed */

/* Carves views out of a run's scratch, each aligned; released by xm_scratch_end (enqueued
 * work keeps what it needs). */
enum { XM_SCRATCH_VIEWS = 16 };
struct xm_scratch {
    struct xm_buffer *whole;
    struct xm_kept_views *kept; /* NULL: none */
    uint64_t used, align;
    struct xm_buffer *views[XM_SCRATCH_VIEWS];
    uint32_t n_views;
};
void xm_scratch_begin(struct xm_scratch *s, const struct xm_primitive *p,
                      const struct xm_run *run);
enum xm_status xm_scratch_take(struct xm_scratch *s, uint64_t bytes,
                               struct xm_buffer **out, struct xm_error *err);
void xm_scratch_end(struct xm_scratch *s);
/* What one take of `bytes` costs, for plan(). */
uint64_t xm_scratch_bytes(const struct xm_primitive *p, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
