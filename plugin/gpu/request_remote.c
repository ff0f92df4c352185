/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs and outputs in remote tensors: memory on the device that the application shares.
 *
 * Inputs are copied into the request's own buffers, and results out of them, because kernels may
 * read behind the end of a buffer, and the request's buffers have room for that. Inputs that the
 * host uses are read once, when the run begins: ids, which are checked, the key mask and the beam
 * index. If a run is cut into chunks or its padding is left out, the host reads all inputs.
 */
#include <inttypes.h>
#include <string.h>

#include "plugin/gpu/request_run.h"
#include "runtime/util/memory.h"

static enum xm_status
check_buffer(const struct xm_request *r, const struct xm_buffer *b, const char *what,
             const char *name, struct xm_error *err)
{
    const struct xm_engine *of = xm_buffer_engine(b), *own = r->program->engine;
    const void *context = xm_engine_cl_context(of);
    if (of == own || (context && context == xm_engine_cl_context(own)))
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "%s '%s': the tensor belongs to another OpenCL context than the model",
                   what, name);
}

static enum xm_status
check_room(const struct xm_buffer *b, uint64_t bytes, const char *what, const char *name,
           struct xm_error *err)
{
    if (bytes <= xm_buffer_bytes(b))
        return XM_OK;
    return xm_fail(err, XM_INVALID,
                   "%s '%s' needs %" PRIu64 " bytes, but its device memory has %" PRIu64,
                   what, name, bytes, xm_buffer_bytes(b));
}

static void
replace(struct xm_remote_io *io, struct xm_buffer *b)
{
    if (b)
        xm_buffer_ref(b);
    xm_buffer_unref(io->buffer);
    io->buffer = b;
}

void
xm_request_free_remote(struct xm_request *r)
{
    const struct xm_ports *ports = &r->program->ports;
    for (uint32_t i = 0; r->remote_inputs && i < ports->n_inputs; i++) {
        replace(&r->remote_inputs[i], NULL);
        xm_free(r->remote_inputs[i].copy);
    }
    for (uint32_t i = 0; r->remote_outputs && i < ports->n_outputs; i++)
        replace(&r->remote_outputs[i], NULL);
    xm_free(r->remote_inputs);
    xm_free(r->remote_outputs);
}

/* ---- inputs -------------------------------------------------------------------------------- */

enum xm_status
xm_request_set_remote_input(struct xm_request *r, uint32_t input,
                            const struct xm_host_tensor *t, struct xm_buffer *b,
                            struct xm_error *err)
{
    if (input >= r->program->ports.n_inputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no input %u", input);
    const struct xm_port *port = &r->program->ports.inputs[input];
    struct xm_host_tensor shape = *t;
    shape.data = b; /* any pointer but NULL, which the check would refuse */
    XM_TRY(xm_port_check(port, &shape, err));
    XM_TRY(check_buffer(r, b, "input", port->name, err));
    XM_TRY(check_room(b, t->bytes, "input", port->name, err));
    replace(&r->remote_inputs[input], b);
    r->inputs[input] = *t;
    r->inputs[input].data = NULL;
    return XM_OK;
}

static bool
host_looks_at(const struct xm_program *p, uint32_t input)
{
    const struct xm_port *port = &p->ports.inputs[input];
    return port->rows || (p->key_mask && strcmp(port->name, p->key_mask) == 0) ||
           (p->beam_idx && strcmp(port->name, p->beam_idx) == 0);
}

static enum xm_status
fetch(struct xm_request *r, uint32_t i, struct xm_error *err)
{
    struct xm_remote_io *io = &r->remote_inputs[i];
    struct xm_host_tensor *t = &r->inputs[i];
    const uint64_t bytes = t->bytes ? t->bytes : 1;
    if (bytes > io->room) {
        void *copy = xm_realloc(io->copy, (size_t)bytes);
        if (!copy)
            return xm_no_memory(err, "%" PRIu64 " bytes of input '%s'", bytes,
                                r->program->ports.inputs[i].name);
        io->copy = copy;
        io->room = bytes;
    }
    XM_TRY(xm_queue_read(r->queue, io->buffer, 0, io->copy, t->bytes, err));
    t->data = io->copy;
    return XM_OK;
}

enum xm_status
xm_request_fetch_inputs(struct xm_request *r, bool all, struct xm_error *err)
{
    const struct xm_program *p = r->program;
    for (uint32_t i = 0; i < p->ports.n_inputs; i++) {
        if (!r->remote_inputs[i].buffer)
            continue;
        if (!all)
            r->inputs[i].data = NULL; /* a copy of an earlier run */
        if (host_looks_at(p, i) != all)
            XM_TRY(fetch(r, i, err));
    }
    return XM_OK;
}

enum xm_status
xm_request_copy_input(struct xm_request *r, uint32_t i, struct xm_error *err)
{
    return xm_queue_copy(r->queue, r->remote_inputs[i].buffer, 0,
                         r->plan->views[r->program->input_values[i]], 0,
                         r->inputs[i].bytes, err);
}

/* ---- outputs ------------------------------------------------------------------------------- */

enum xm_status
xm_request_set_remote_output(struct xm_request *r, uint32_t output, struct xm_buffer *b,
                             struct xm_error *err)
{
    if (output >= r->program->ports.n_outputs)
        return xm_fail(err, XM_NOT_FOUND, "there is no output %u", output);
    if (b)
        XM_TRY(check_buffer(r, b, "output", r->program->ports.outputs[output].name, err));
    replace(&r->remote_outputs[output], b);
    return XM_OK;
}

enum xm_status
xm_request_deliver(struct xm_request *r, uint32_t i, struct xm_error *err)
{
    const char *name = r->program->ports.outputs[i].name;
    const struct xm_result *result = &r->results[i];
    struct xm_buffer *to = r->remote_outputs[i].buffer;
    if (result->state == XM_RESULT_READ) {
        XM_TRY(check_room(to, result->tensor.bytes, "output", name, err));
        return xm_queue_write(r->queue, to, 0, result->tensor.data, result->tensor.bytes,
                              err);
    }
    struct xm_operand o;
    uint64_t bytes = 0;
    xm_request_operand(r, r->program->output_values[i], &o);
    if (!xm_element_bytes(o.element, xm_operand_elements(&o), &bytes))
        return xm_fail(err, XM_INVALID, "output '%s' has no size", name);
    XM_TRY(check_room(to, bytes, "output", name, err));
    return xm_queue_copy(r->queue, o.buffer, 0, to, 0, bytes, err);
}
