/* SPDX-License-Identifier: Apache-2.0
 *
 * A primitive: one operation on a device, in four steps.
 *
 *   supports  pure, before anything is created: can this device run this descriptor, and if
 *             not, why (xm_<primitive>_supports, asked by the graph passes through xm_caps)
 *   create    from a descriptor: picks the rows of its variant table that may be needed, builds
 *             their kernels; afterwards the primitive is immutable and shared by threads
 *   plan      returns the bytes of scratch that a run needs; looks at shapes only
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
/* Returns the rows of the operand: the product of all dimensions but the last. */
uint64_t xm_operand_rows(const struct xm_operand *o);

/* A weight whose bytes are on the device; shared by the steps that read it. */
struct xm_device_weight {
    /* sizes, element type, group and scale order of the bytes on the device; `view` is the part of
     * the stored weight that this one is */
    struct xm_weight host;
    /* the weight as the file has it, before it was packed or its scales were reordered for the
     * device */
    struct xm_weight file;
    bool on_host; /* made by xm_host_weight_create                               */
    struct xm_buffer *data, *scale;
    struct xm_buffer *zero_point; /* or codebook, or experts' factors; NULL: absent */
    int refs;
};
/* Copies a weight to the device, or shares its bytes where the device reads host memory. The caller
 * gets one reference. */
enum xm_status xm_device_weight_create(struct xm_engine *engine,
                                       const struct xm_weight *w,
                                       struct xm_device_weight **out,
                                       struct xm_error *err);
/* Like xm_device_weight_create, but if the bytes must be copied, copies only those of the view. It
 * also copies them if the device could read them in place, but the view's rows are short pieces of
 * the stored rows. */
enum xm_status xm_device_part_create(struct xm_engine *engine, const struct xm_weight *w,
                                     struct xm_device_weight **out, struct xm_error *err);
/* Like xm_device_weight_create, but kernels read the bytes from host memory (xm_buffer_on_host). */
enum xm_status xm_host_weight_create(struct xm_engine *engine, const struct xm_weight *w,
                                     struct xm_device_weight **out, struct xm_error *err);
/* Creates a weight for view `w` of the bytes that `of` holds in the file's layout; shares its
 * buffers. */
enum xm_status xm_device_weight_view(const struct xm_device_weight *of,
                                     const struct xm_weight *w,
                                     struct xm_device_weight **out, struct xm_error *err);
void xm_device_weight_ref(struct xm_device_weight *w);
void xm_device_weight_unref(struct xm_device_weight *w); /* NULL is allowed */

/* Returns the most tokens of one call for which a library generates code: `chunk`, the XM_UBATCH of
 * a program that has one of its own; 0: the engine's. */
static inline uint64_t
xm_chunk_tokens(const struct xm_engine *engine, uint64_t chunk)
{
    return chunk ? chunk : xm_engine_config(engine)->ubatch;
}

/* What a primitive does with an operand. */
enum xm_role {
    XM_ROLE_NONE, /* never on the device: the descriptor holds it */
    XM_ROLE_IN = 1,
    XM_ROLE_OUT = 2,                           /* shares no bytes with another operand */
    XM_ROLE_IN_OUT = XM_ROLE_IN | XM_ROLE_OUT, /* changed in place */
    /* a copy of another operand, in the form that the descriptor says (form.h) */
    XM_ROLE_FORM = 4
};
/* Roles of the operands of a primitive: xm_roles_2_1 for one that reads 2 operands and then writes
 * 1. */
extern const uint8_t xm_roles_1_1[2], xm_roles_2_1[3], xm_roles_3_1[4], xm_roles_1_2[3];
/* clang-format off */
#define XM_ROLES(roles) roles, XM_ARRAY_LEN(roles)
/* clang-format on */

struct xm_expert_cache;
struct xm_attention_run;

/* The XM_KEPT_VIEWS views (sub-buffers) of a scratch buffer that were made last. They are reused,
 * because layers and tokens ask for the same offsets and sizes again and creating a sub-buffer
 * costs a driver call. All zeros: none. */
enum { XM_KEPT_VIEWS = 8 };
struct xm_kept_views {
    struct xm_buffer *view[XM_KEPT_VIEWS]; /* referenced */
    uint64_t offset[XM_KEPT_VIEWS];
    uint32_t oldest;
};
/* Releases the views; call it before the scratch is freed. */
void xm_kept_views_free(struct xm_kept_views *k);

/* The arguments of a run besides its operands. */
struct xm_run {
    struct xm_queue *queue;
    struct xm_buffer *scratch;   /* as many bytes as plan returned; NULL for 0  */
    struct xm_kept_views *views; /* of `scratch`; NULL: none are kept            */
    /* for moe: the cache of experts whose weights lie in host memory; NULL: none */
    const struct xm_expert_cache *experts;
    /* for attention: the sequences of the run (attention/attention.h); otherwise unused */
    const struct xm_attention_run *sequences;
};

struct xm_primitive;
struct xm_primitive_ops {
    const char *name;
    /* Sets the bytes of scratch that a run with these operand shapes, and `sequences` as in struct
     * xm_run, needs; reads no buffers. NULL: a run needs none. */
    enum xm_status (*plan)(const struct xm_primitive *p,
                           const struct xm_operand *operands,
                           const struct xm_attention_run *sequences,
                           uint64_t *scratch_bytes, struct xm_error *err);
    enum xm_status (*run)(const struct xm_primitive *p, const struct xm_operand *operands,
                          const struct xm_run *run, struct xm_error *err);
    /* Writes the names of the kernels that a run with these shapes would launch, in launch order:
     * "moe_route_ref moe_gate_up_vec …". */
    void (*describe)(const struct xm_primitive *p, const struct xm_operand *operands,
                     char *out, size_t out_bytes);
    void (*destroy)(struct xm_primitive *p);
    const uint8_t *roles; /* enum xm_role of each operand */
    uint32_t n_operands;
};

/* First member of every primitive's own struct. */
struct xm_primitive {
    const struct xm_primitive_ops *ops;
    struct xm_engine *engine; /* referenced */
};

enum xm_status xm_primitive_plan(const struct xm_primitive *p,
                                 const struct xm_operand *operands,
                                 const struct xm_attention_run *sequences,
                                 uint64_t *scratch_bytes, struct xm_error *err);
enum xm_status xm_primitive_run(const struct xm_primitive *p,
                                const struct xm_operand *operands,
                                const struct xm_run *run, struct xm_error *err);
void xm_primitive_describe(const struct xm_primitive *p,
                           const struct xm_operand *operands, char *out,
                           size_t out_bytes);
void xm_primitive_destroy(struct xm_primitive *p); /* NULL is allowed */

/* Cuts views, each aligned, from a run's scratch. xm_scratch_end releases the views; enqueued work
 * keeps a reference to those it uses. */
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
/* Returns the bytes that one xm_scratch_take of `bytes` uses up, for plan(). */
uint64_t xm_scratch_bytes(const struct xm_primitive *p, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
